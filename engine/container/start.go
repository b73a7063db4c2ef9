package container

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/engine/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// noProcess is why a container can't be started: to be created it needs none.
const noProcess = "config.json: /process: there is nothing to start without it"

// Start lets a created container execute its program.
func (c *Container) Start() error {
	defer c.runtime.Trace.Begin("start").End()
	if err := c.hold(); err != nil {
		return err
	}
	defer c.Release()
	switch status := c.status(); status {
	case specs.StateCreated:
	case specs.StateStopped:
		return fmt.Errorf("container %s: cannot start a container that has stopped (delete it, and create it again)", c.ID)
	case specs.StateRunning:
		return fmt.Errorf("container %s: cannot start an already running container", c.ID)
	case Paused:
		return fmt.Errorf("container %s: cannot start a paused container (resume it first)", c.ID)
	default:
		return fmt.Errorf("cannot start container %s: it is %s", c.ID, status)
	}
	if c.NoProcess {
		return fmt.Errorf("cannot start container %s: %s", c.ID, noProcess)
	}
	hooks, env, err := c.hooks()
	if err != nil {
		return err
	}
	err = c.passGate(hooks, env)
	if err == nil {
		err = c.begun(hooks)
	}
	return c.undoneBy(err)
}

// begun does what is left when the container's program runs. The gate's file stays until then by
// another name, if there are hooks: for FinishStart.
func (c *Container) begun(hooks *specs.Hooks) error {
	if len(hooks.Poststart) == 0 {
		_ = unix.Unlinkat(c.dir, gateFile, 0)
		return nil
	}
	_ = unix.Renameat(c.dir, gateFile, c.dir, poststartFile)
	if err := c.poststart(hooks); err != nil {
		return err
	}
	_ = unix.Unlinkat(c.dir, poststartFile, 0)
	return nil
}

// undoneBy removes the container for a hook that has failed ("continue the lifecycle at step 12",
// runtime.md).
func (c *Container) undoneBy(err error) error {
	var hook *HookError
	if errors.As(err, &hook) {
		err = errors.Join(err, c.remove())
	}
	return err
}

// FinishStart goes on with a Start that was cut off by the end of the process that made it, when
// the container's program had begun to run: with the poststart hooks, from the first on, as no one
// knows which of them have run.
func (c *Container) FinishStart() error {
	if err := c.hold(); err != nil {
		return err
	}
	defer c.Release()
	if !c.has(poststartFile) && (!c.has(gateFile) || c.status() != specs.StateRunning) {
		return nil
	}
	hooks, _, err := c.hooks()
	if err == nil {
		err = c.begun(hooks)
	}
	return c.undoneBy(err)
}

// hooks gives the container's hooks, and the environment of those that name none.
// It is not the plan that is made again: most of that, the seccomp filter above all,
// is done. Without hooks not even the config is read, of which a seccomp profile is
// the larger part.
func (c *Container) hooks() (*specs.Hooks, []string, error) {
	if c.NoHooks {
		return &specs.Hooks{}, nil, nil
	}
	s, err := c.Config()
	if err != nil {
		return nil, nil, err
	}
	if s.Hooks == nil {
		s.Hooks = &specs.Hooks{}
	}
	var env []string
	if s.Process != nil {
		env = s.Process.Env
	}
	return s.Hooks, env, nil
}

// passGate connects to the first process and serves it up to its execve.
func (c *Container) passGate(hooks *specs.Hooks, env []string) error {
	defer c.runtime.Trace.Begin("pass the gate").End()
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("container %s: make a socket: %w", c.ID, err)
	}
	// The connection wakes it: nothing is between that and the word that it waits for, or it would
	// fall asleep again. That it is the container's process need not be looked at, no one else
	// listens here.
	if err := unix.Connect(s, c.gateAddress()); err != nil {
		unix.Close(s)
		hint := ""
		switch err {
		case unix.ECONNREFUSED:
			err = ErrNotRunning // since its state was looked at
		case unix.ENOENT:
			hint = " (the socket its first process waits on is gone: delete the container, and create it again)"
		}
		return fmt.Errorf("container %s: connect to its start gate: %w%s", c.ID, err, hint)
	}
	var may []program.Expectation
	if len(hooks.StartContainer) > 0 {
		may = append(may, program.Expectation{Request: program.Request{Kind: program.AskStartHooks}})
	}
	may = append(may, program.Expectation{Request: program.Request{Kind: program.AskListener}, FD: true})
	gate := launch.Attach(s, c.Pid, program.NewTalk(may...), func(f program.Failure) error {
		return launch.ExplainCall(f, c.noteOf(f), c.Pid)
	})
	defer gate.Detach()
	if err := gate.Answer(); err != nil {
		return err
	}
	err = gate.Serve(0, func(ask program.Request, fd int) error {
		if fd >= 0 {
			defer unix.Close(fd)
		}
		switch ask.Kind {
		case program.AskStartHooks:
			p, err := c.plan()
			if err != nil {
				return err
			}
			return c.startHooks(p, env)
		case program.AskListener:
			p, err := c.plan()
			if err != nil {
				return err
			}
			if err := c.runtime.watch(p, &p.Process, &IO{}); err != nil {
				return err
			}
			return c.deliverListener(p.Process.Seccomp, c.Pid, fd, nil)
		}
		return refuse(ask, fd)
	})
	if errors.Is(err, launch.ErrExecuted) {
		return nil
	}
	return err
}

// noteOf tells what a call that failed behind the gate was for.
func (c *Container) noteOf(f program.Failure) program.Note {
	if f.Nr == unix.SYS_SECCOMP {
		return program.Note{Pointer: "/linux/seccomp", Text: "load the seccomp filter"}
	}
	note := program.Note{Pointer: "/process/args/0", Text: "exec"}
	if s, err := c.Config(); err == nil && s.Process != nil && len(s.Process.Args) > 0 {
		note.Text += ": " + strconv.Quote(s.Process.Args[0])
	}
	return note
}

// Config reads the config that the container was made from.
func (c *Container) Config() (*specs.Spec, error) {
	data, err := readFileAt(c.dir, configFile)
	if err != nil {
		return nil, fmt.Errorf("container %s: read its config: %w", c.ID, err)
	}
	s, err := spec.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("container %s: its config: %w", c.ID, err)
	}
	return s, nil
}

// plan plans the container again, from the config that it was made from. The
// cgroup is there already; to plan a unit again would take a look at systemd.
func (c *Container) plan() (*plan.Plan, error) {
	s, err := c.parsed, error(nil)
	c.parsed = nil // it is not used for longer, as an update may change what is on disk
	if s == nil {
		s, err = c.Config()
	}
	if err != nil {
		return nil, err
	}
	var h *machine
	// Who plans again needs the group too: the hierarchies are found once for both.
	if g, _ := c.OpenGroup(); g != nil {
		h, err = machineWith(g.Host())
	} else {
		h, err = lookAtMachine()
	}
	if err != nil {
		return nil, err
	}
	return plan.New(s, h.Host, plan.Options{ID: c.ID, Bundle: c.Bundle, NoPivot: c.NoPivot, NoNewKeyring: c.NoNewKeyring, NoCgroup: c.Cgroup.Path == "" || c.Cgroup.Unit != "",
		Placed: &plan.Placed{Path: c.Cgroup.Path, Unit: c.Cgroup.Unit}})
}

// OwnerName is the name of the user who made the container, or the number of
// one without a name.
func (s *State) OwnerName() string { return userName(s.Owner) }
