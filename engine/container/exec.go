package container

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/engine/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// ExecOptions say how a process is added to a container.
type ExecOptions struct {
	IO
	// Process is what to run: see Container.Template for one with defaults.
	Process *specs.Process
	PidFile string
	// Cgroups are sub-cgroups to enter, by controller; "" stands for all.
	Cgroups map[string]string
	// Signals, if Interrupted is not nil, is a descriptor that can be read when a signal
	// has come. Interrupted is asked then whether the caller wants an end.
	Signals     int
	Interrupted func() bool
	// IgnorePaused adds the process to a frozen container, where it waits.
	IgnorePaused bool
	// Held, if not nil, is called when the process is there. In a container with a pid namespace it
	// has not executed its program then, and does not before Held has returned: see Rejoin. Done
	// says whether it has, before the socket is closed that it was held by.
	Held func(launch.Held) error
	Done func(executed bool)
}

// errStopped has the words that clients search.
var errStopped = errors.New("cannot exec in a stopped container")

// Template is the process object that exec starts from: what the container's own
// process was given.
func (c *Container) Template() (*specs.Process, error) {
	s, err := c.Config()
	if err != nil {
		return nil, err
	}
	if s.Process == nil {
		return nil, errors.New("the container's config has no process to take defaults from; give --process")
	}
	c.parsed = s // Exec plans by it
	process := *s.Process
	// The caller changes it as it likes, by append too.
	process.Env, process.User.AdditionalGids = slices.Clip(process.Env), slices.Clip(process.User.AdditionalGids)
	if process.Capabilities != nil {
		sets := *process.Capabilities
		sets.Bounding, sets.Effective, sets.Permitted = slices.Clip(sets.Bounding), slices.Clip(sets.Effective), slices.Clip(sets.Permitted)
		sets.Inheritable, sets.Ambient = slices.Clip(sets.Inheritable), slices.Clip(sets.Ambient)
		process.Capabilities = &sets
	}
	return &process, nil
}

// execer is the making of one added process.
type execer struct {
	*Container
	o       *ExecOptions
	plan    *plan.Plan
	process plan.Process
	spawn   spawn
	child   *launch.Child
	asked   bool // the child has asked for something
	// subgroups are those that stand for the container's own in some hierarchies.
	subgroups []*cgroup.Group
}

// Exec adds a process to the container. When it returns, the process's program
// has been executed.
func (c *Container) Exec(o *ExecOptions) (*launch.Child, error) {
	defer c.runtime.Trace.Begin("exec").End()
	if err := c.CanExec(o.IgnorePaused); err != nil {
		return nil, err
	}
	e, err := c.execer(o)
	if err != nil {
		return nil, err
	}
	if compile.WaitsWithMore(e.plan) && c.atGate() {
		return nil, fmt.Errorf("container %s: cannot exec before its start: its first process needs CAP_SYS_ADMIN until it has loaded the seccomp filter, and CAP_SYS_PTRACE could take that over (start it first, or set process.noNewPrivileges)", c.ID)
	}
	child, err := e.run()
	if err != nil {
		return nil, ofProcess(err)
	}
	return child, nil
}

// execer plans the making of a process.
func (c *Container) execer(o *ExecOptions) (*execer, error) {
	warnings, err := spec.CheckProcess(o.Process)
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	for _, w := range warnings {
		c.runtime.warn("process: %s", w.Error())
	}
	if err := o.IO.check(o.Process.Terminal); err != nil {
		return nil, err
	}
	planning := c.runtime.Trace.Begin("plan")
	p, err := c.plan()
	planning.End()
	if err != nil {
		return nil, err
	}
	process, problems := plan.NewProcess(o.Process, "/process")
	if len(problems) > 0 {
		return nil, spec.Errors(problems)
	}
	process.Inherit(&p.Process, o.Process)
	for _, w := range process.Restrict(p.Lacks) {
		c.runtime.warn("process: %s", strings.TrimPrefix(w, "/process"))
	}
	process.SetAffinity(o.Process.ExecCPUAffinity)
	process.PreserveFDs = len(o.Preserve)
	process.AddHome(func() string { return c.runtime.homeOf(c.Accounts().UserByID(process.UID)) })
	if err := c.runtime.watch(p, &process, &o.IO); err != nil {
		return nil, err
	}
	return &execer{Container: c, o: o, plan: p, process: process}, nil
}

// CanExec says why nothing can be added to the container in the state that it is in.
func (c *Container) CanExec(ignorePaused bool) error {
	switch status := c.status(); status {
	case specs.StateRunning, specs.StateCreated:
	case specs.StateStopped:
		return fmt.Errorf("container %s: %w", c.ID, errStopped)
	case Paused:
		if !ignorePaused {
			return fmt.Errorf("container %s: cannot exec in a paused container (resume it, or use --ignore-paused)", c.ID)
		}
	default:
		return fmt.Errorf("cannot exec in container %s: it is %s", c.ID, status)
	}
	return nil
}

func (e *execer) run() (*launch.Child, error) {
	preparing := e.runtime.Trace.Begin("prepare what the init needs")
	joins, err := e.namespacesOf(e.Pid)
	if err != nil {
		return nil, err
	}
	defer joins.close()
	if !e.Alive() {
		// Checked after the pidfd was opened: it can't be another process's.
		return nil, fmt.Errorf("container %s: %w", e.ID, errStopped)
	}
	f := &e.spawn.Facts
	f.Fork = joins.fork
	f.DropGroups = os.Geteuid() == 0
	f.OwnScore = e.process.OOMScoreAdj != nil && (os.Geteuid() != 0 || host.InUserNS())
	f.LastCap = lastCap()
	f.RootUID, f.RootGID = e.plan.IDs.Root()
	f.ChownStdio = chownStdio(e.o.Stdio, &e.process, e.plan.IDs.UID)
	f.KeepGroups = os.Geteuid() != 0 && mapsOnlySelf(&e.plan.IDs)
	e.spawn.Stdio, e.spawn.Preserved = e.o.Stdio, e.o.Preserve
	e.spawn.Trace = e.runtime.Trace
	e.spawn.Signals, e.spawn.Interrupted = e.o.Signals, e.o.Interrupted
	if !e.o.IgnorePaused {
		e.spawn.Patience = launch.Patience
	}
	e.spawn.Gate, e.spawn.Cgroup = -1, -1
	e.spawn.Joins, e.spawn.Root = joins.list, joins.root
	group, err := e.enterGroup()
	if errors.Is(err, cgroup.ErrFrozen) && e.Cgroup.Unit != "" && e.hold() == nil {
		// An update had stopped it (see atStandstill), and has not the lock any more.
		e.Release()
		group, err = e.enterGroup()
	}
	if err != nil {
		return nil, err
	}
	if group != nil {
		defer group.Close()
	}
	defer func() {
		for _, g := range e.subgroups {
			g.Close()
		}
	}()
	preparing.End()
	err = e.launch()
	if errors.Is(err, unix.EBUSY) && !e.asked && group != nil && len(e.o.Cgroups) == 0 {
		err = e.launchBesideFirst(group.Host())
	}
	if err != nil {
		return nil, err
	}
	child := e.child
	if signal, early := child.EndedEarly(); early {
		child.Kill()
		return nil, killedEarly(e.ID, signal)
	}
	child.Close()
	if e.o.PidFile != "" {
		if err := writePidFile(e.o.PidFile, child.Pid); err != nil {
			child.Kill()
			return nil, err
		}
	}
	if e.o.PidfdSocket != "" {
		if err := sendDescriptor(e.o.PidfdSocket, "pidfd", child.PidFD); err != nil {
			child.Kill()
			return nil, fmt.Errorf("--pidfd-socket: %w", err)
		}
	}
	return child, nil
}

// ofProcess has an error about an added process lead into its process object: the config.json is
// not to blame.
func ofProcess(err error) error {
	var call *launch.Error
	if errors.As(err, &call) {
		if pointer, found := strings.CutPrefix(call.Pointer, "/process"); found {
			call.File, call.Pointer = "process", pointer
		}
	}
	return err
}

// killedEarly is the error about a process that was killed while it was set up,
// by another process or by a limit of the cgroup.
func killedEarly(id string, signal unix.Signal) error {
	why := "a limit of the cgroup may be too small"
	if signal == unix.SIGSYS || signal == unix.SIGILL {
		// The init ends itself by an illegal instruction where it may not even exit.
		why = "the seccomp profile refuses execve, or what is needed for it; berth seccomp explain shows why"
	}
	return fmt.Errorf("container %s: the process was killed by %s before it could execute its program (%s)", id, unix.SignalName(signal), why)
}

// launch starts the process, and serves it until it has executed its program.
func (e *execer) launch() error {
	child, err := e.start()
	if err != nil {
		return err
	}
	e.child = child
	if e.o.Held != nil {
		err = child.OnceForked(func() error { return e.o.Held(child.Held()) })
		if err != nil {
			child.Kill()
			return err
		}
	}
	serving := e.runtime.Trace.Begin("serve the init until it executes the program")
	err = child.Serve(0, e.serve)
	serving.End()
	if e.o.Done != nil {
		e.o.Done(errors.Is(err, launch.ErrExecuted))
	}
	if !errors.Is(err, launch.ErrExecuted) {
		child.Kill()
		return err
	}
	return nil
}

// launchBesideFirst launches the process in the cgroup of the container's first one.
// The container's own can hold no processes any more once something in it, such
// as systemd, gives controllers to cgroups below it. The clone is told so, or the process
// where it enters by its own hand: before it asks for anything, so nothing is done twice.
func (e *execer) launchBesideFirst(h *cgroup.Host) error {
	g, err := h.OfProcess(e.Pid, cgroup.Force())
	if err != nil {
		return err
	}
	defer g.Close()
	if err := e.enter(g); err != nil {
		return err
	}
	return e.launch()
}

// enter lets the process start inside a group of the container's.
func (e *execer) enter(g *cgroup.Group) error {
	if e.o.IgnorePaused || e.mayBeFrozenMeanwhile(g) {
		(&group{g}).enterLate(&e.spawn)
		return nil
	}
	return (&group{g}).enter(&e.spawn)
}

// enterGroup lets the process start inside the container's cgroup, or a
// sub-cgroup of it.
func (e *execer) enterGroup() (*cgroup.Group, error) {
	g, err := e.OpenGroup()
	if err != nil || g == nil {
		return nil, err
	}
	for controller, sub := range e.o.Cgroups {
		if slices.Contains(strings.Split(sub, "/"), "..") {
			if controller != "" {
				sub = controller + ":" + sub
			}
			return nil, fmt.Errorf("--cgroup %s: it leads out of the container's cgroup (name one below it, without \"..\")", sub)
		}
	}
	if sub, ok := e.o.Cgroups[""]; ok || e.Cgroup.Payload != "" || e.o.IgnorePaused {
		options := []cgroup.Option{cgroup.Force()}
		if e.o.IgnorePaused {
			options = append(options, cgroup.IntoFrozen())
		}
		inner, err := g.Host().Open(path.Join(e.Cgroup.Path, e.Cgroup.Payload, sub), options...)
		if err != nil {
			return nil, fmt.Errorf("--cgroup %s: %w", sub, err)
		}
		g = inner
	}
	err = e.enter(g)
	if err == nil {
		err = e.enterSubgroups(g)
	}
	if err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// enterSubgroups puts a sub-cgroup in place of the container's own for each
// controller that one is named for, with those that share its hierarchy.
func (e *execer) enterSubgroups(g *cgroup.Group) error {
	for controller, sub := range e.o.Cgroups {
		if controller == "" {
			continue
		}
		own := g.Directory(controller)
		if own == "" {
			return fmt.Errorf("--cgroup %s:%s: the container has no cgroup for %s", controller, sub, controller)
		}
		inner, err := g.Host().Open(path.Join(e.Cgroup.Path, e.Cgroup.Payload, sub), cgroup.Force(), cgroup.Only(controller))
		if err != nil {
			return fmt.Errorf("--cgroup %s:%s: %w", controller, sub, err)
		}
		e.subgroups = append(e.subgroups, inner)
		if e.spawn.Cgroup >= 0 {
			fd, err := inner.CloneFD()
			if err != nil {
				return fmt.Errorf("--cgroup %s:%s: %w", controller, sub, err)
			}
			if fd >= 0 {
				e.spawn.Cgroup = fd
				continue
			}
		}
		if e.spawn.Group == own {
			e.spawn.Group = inner.Directory(controller)
		}
		for i, file := range e.spawn.Facts.Tasks {
			if path.Dir(file) == own {
				e.spawn.Facts.Tasks[i] = path.Join(inner.Directory(controller), path.Base(file))
			}
		}
	}
	return nil
}

func (e *execer) compile(f *compile.Facts) (*program.Program, error) {
	return compile.Exec(e.plan, &e.process, f)
}

func (e *execer) serve(ask program.Request, fd int) error {
	e.asked = true
	if fd >= 0 {
		defer unix.Close(fd)
	}
	switch ask.Kind {
	case program.AskConsole:
		return e.o.deliverConsole(fd)
	case program.AskOOMScore:
		return e.adjustOOM(e.child.Pid, &e.process)
	case program.AskLimits:
		return setLimit(e.child.Pid, &e.process, int(ask.Value))
	case program.AskScheduling:
		return setScheduler(e.child.Pid, &e.process)
	case program.AskListener:
		return e.deliverListenerOf(e.child, e.process.Seccomp, fd, e.o.Refusals)
	}
	return refuse(ask, fd)
}
