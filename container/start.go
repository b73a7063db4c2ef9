package container

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/berth-runtime/berth/compile"
	"github.com/berth-runtime/berth/host"
	"github.com/berth-runtime/berth/launch"
	"github.com/berth-runtime/berth/plan"
	"github.com/berth-runtime/berth/program"
	"github.com/berth-runtime/berth/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

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
		return errors.New("cannot start a container that has stopped")
	case specs.StateRunning:
		return errors.New("cannot start an already running container")
	case Paused:
		return errors.New("cannot start a paused container (resume it first)")
	default:
		return fmt.Errorf("cannot start container %s: it is %s", c.ID, status)
	}
	// Not the plan: most of that, the seccomp filter above all, is done.
	s, err := c.config()
	if err != nil {
		return err
	}
	if s.Hooks == nil {
		s.Hooks = &specs.Hooks{}
	}
	err = c.passGate(s)
	if err == nil {
		_ = unix.Unlinkat(c.dir, gateFile, 0)
		err = c.poststart(s.Hooks)
	}
	var hook *HookError
	if errors.As(err, &hook) {
		// A hook that fails undoes the container ("continue the lifecycle at step
		// 12", runtime.md).
		err = errors.Join(err, c.remove())
	}
	return err
}

// passGate connects to the first process and serves it up to its execve.
func (c *Container) passGate(config *specs.Spec) error {
	defer c.runtime.Trace.Begin("pass the gate").End()
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("container %s: make a socket: %w", c.ID, err)
	}
	if err := unix.Connect(s, c.gateAddress()); err != nil {
		unix.Close(s)
		return fmt.Errorf("container %s: connect to its start gate: %w", c.ID, err)
	}
	pidfd, err := c.pidfd()
	if err != nil {
		unix.Close(s)
		return err
	}
	gate := launch.Attach(s, c.Pid, pidfd, func(f program.Failure) error {
		note := program.Note{Pointer: "/process/args/0", Text: "exec: " + strconv.Quote(config.Process.Args[0])}
		if f.Nr == unix.SYS_SECCOMP {
			note = program.Note{Pointer: "/linux/seccomp", Text: "load the seccomp filter"}
		}
		return launch.ExplainCall(f, note, c.Pid)
	})
	defer gate.Detach()
	if err := gate.Answer(); err != nil {
		return err
	}
	err = gate.Serve(0, func(ask compile.Record, fd int) error {
		if fd >= 0 {
			defer unix.Close(fd)
		}
		switch ask.Kind {
		case compile.StartHooks:
			return c.startHooks(config.Hooks, config.Process.Env)
		case compile.Listener:
			p, err := c.plan()
			if err != nil {
				return err
			}
			return c.deliverListener(p.Process.Seccomp, c.Pid, fd)
		}
		return refuse(ask, fd)
	})
	if errors.Is(err, launch.ErrExecuted) {
		return nil
	}
	return err
}

// config reads the config that the container was made from.
func (c *Container) config() (*specs.Spec, error) {
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
	s, err := c.config()
	if err != nil {
		return nil, err
	}
	var h *host.Host
	if c.opened != nil {
		h, err = host.ProbeBeside(c.opened.Host())
	} else {
		h, err = host.Probe()
	}
	if err != nil {
		return nil, err
	}
	return plan.New(s, h, plan.Options{ID: c.ID, Bundle: c.Bundle, NoPivot: c.NoPivot, NoCgroup: c.Cgroup.Path == "" || c.Cgroup.Unit != ""})
}

// OwnerName is the name of the user who made the container, or the number of
// one without a name.
func (s *State) OwnerName() string { return userName(s.Owner) }
