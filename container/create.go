package container

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/berth-runtime/berth/compile"
	"github.com/berth-runtime/berth/host"
	"github.com/berth-runtime/berth/internal/resctrl"
	"github.com/berth-runtime/berth/launch"
	"github.com/berth-runtime/berth/plan"
	"github.com/berth-runtime/berth/program"
	"github.com/berth-runtime/berth/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// CreateOptions say how a container is made, beyond its config.json.
type CreateOptions struct {
	Bundle string // absolute
	IO
	PidFile      string
	NoPivot      bool
	NoNewKeyring bool
	// NotifySocket is systemd's socket that is to hear when the process is ready:
	// see Notifier.
	NotifySocket string
	// Spec is the configuration, instead of the bundle's config.json.
	Spec *specs.Spec
	// Init keeps the container's program from being the first process of its pid
	// namespace; for Attached containers.
	Init bool
	// Attached containers are not started by Start: they are let go by the
	// Created that Create returns.
	Attached bool
}

// IO is where a process's descriptors come from and go to.
type IO struct {
	Stdio [3]uintptr
	// Preserve are further descriptors, from 3 on.
	Preserve []uintptr
	// Listen is how many of them were passed by socket activation, of which the
	// process is told by LISTEN_FDS.
	Listen        int
	ConsoleSocket string
	// Console is given the master of the terminal instead of a socket.
	Console     func(master *os.File) error
	PidfdSocket string
}

// A Created is a container whose first process waits for its start in this
// process's hands.
type Created struct {
	*Container
	child *launch.Child
	maker *maker
}

// maker is the making of one container.
type maker struct {
	*Container
	o     *CreateOptions
	spec  *specs.Spec
	plan  *plan.Plan
	host  *host.Host
	spawn launch.Spawn
	bus   *bus // nil where systemd has nothing to do with it
	unit  bool // the unit has been started
	group *group
	child *launch.Child
	fds   []int // ours, closed when the child has its own

	rdt      *resctrl.Group
	hooked   bool // hooks have been run, or tried
	copyFrom int  // the source of a tmpcopyup, between its two Asks
}

// Create makes a container from a bundle, up to the point where only the user's
// program is left to be executed. When it fails, nothing is left.
func (r *Runtime) Create(id string, o *CreateOptions) (*Created, error) {
	defer r.Trace.Begin("create").End()
	var bus *bus
	if r.Systemd && !r.NoCgroup {
		bus = dialSystemd()
		defer bus.Close()
	}
	m, config, err := r.newMaker(id, o, bus)
	if err != nil {
		return nil, err
	}
	created, err := m.make(config)
	if err != nil {
		m.fail()
		return nil, err
	}
	return created, nil
}

// newMaker plans a container and takes its id.
func (r *Runtime) newMaker(id string, o *CreateOptions, bus *bus) (*maker, []byte, error) {
	if err := CheckID(id); err != nil {
		return nil, nil, err
	}
	reading := r.Trace.Begin("read and check config.json")
	config, s, warnings, err := o.load()
	reading.End()
	if err != nil {
		return nil, nil, err
	}
	for _, w := range warnings {
		r.warn("%s", w.Error())
	}
	if err := o.IO.check(s.Process != nil && s.Process.Terminal); err != nil {
		return nil, nil, err
	}
	probing := r.Trace.Begin("look at the host")
	h, err := host.Probe()
	probing.End()
	if err != nil {
		return nil, nil, err
	}
	if bus != nil {
		if err := bus.tell(h); err != nil {
			return nil, nil, err
		}
	}
	planning := r.Trace.Begin("plan")
	p, err := plan.New(s, h, plan.Options{
		ID: id, Bundle: o.Bundle, SystemdCgroup: r.Systemd, NoCgroup: r.NoCgroup,
		NoPivot: o.NoPivot, NoNewKeyring: o.NoNewKeyring, PreserveFDs: len(o.Preserve),
		Init: o.Init,
	})
	planning.End()
	if err != nil {
		return nil, nil, &spec.ConfigError{Err: err}
	}
	for _, w := range p.Warnings {
		r.warn("%s", w)
	}
	claiming := r.Trace.Begin("take the id")
	c, err := r.claim(id)
	claiming.End()
	if err != nil {
		return nil, nil, err
	}
	return &maker{Container: c, o: o, spec: s, plan: p, host: h, bus: bus}, config, nil
}

// load reads the configuration, or writes the one that was given.
func (o *CreateOptions) load() ([]byte, *specs.Spec, []spec.Complaint, error) {
	config := []byte(nil)
	if o.Spec != nil {
		config = spec.Format(o.Spec, "")
	} else {
		var err error
		if config, err = spec.Read(o.Bundle); err != nil {
			return nil, nil, nil, err
		}
	}
	s, warnings, err := spec.ParseChecked(config)
	if err != nil {
		return nil, nil, nil, &spec.ConfigError{Err: err}
	}
	return config, s, warnings, nil
}

// check refuses streams that do not fit what the config says of a terminal.
func (o *IO) check(terminal bool) error {
	switch {
	case terminal && o.ConsoleSocket == "" && o.Console == nil:
		return errors.New("cannot allocate a terminal: the process has \"terminal\": true, and nobody would receive the terminal; give --console-socket")
	case !terminal && o.ConsoleSocket != "":
		return errors.New("--console-socket is given, but the process has no \"terminal\": true")
	}
	return nil
}

// intend puts on record what is to be made, and makes what the processes go into.
func (m *maker) intend(config []byte) error {
	defer m.runtime.Trace.Begin("record the intent, make the cgroup").End()
	m.Record = Record{
		ID: m.plan.ID, OCIVersion: m.spec.Version, Bundle: m.o.Bundle, Rootfs: m.plan.Root.Path,
		Created: time.Now().UTC(), Owner: uint32(os.Geteuid()), Annotations: m.spec.Annotations,
		Systemd: m.runtime.Systemd, NoPivot: m.plan.NoPivot, NoHooks: m.spec.Hooks == nil,
	}
	if !m.plan.Cgroup.None {
		m.Cgroup.Path, m.Cgroup.Payload = m.plan.Cgroup.Path, m.plan.Cgroup.Payload
	}
	if u := m.plan.Cgroup.Unit; u != nil {
		m.Cgroup.Unit = u.Unit
	}
	if err := writeFileAt(m.dir, configFile, config, 0o600); err != nil {
		return err
	}
	// The intent is on record from here on.
	if err := m.save(); err != nil {
		return err
	}
	if err := m.makeGroup(); err != nil {
		return err
	}
	return m.makeRdt()
}

func (m *maker) make(config []byte) (*Created, error) {
	if err := m.intend(config); err != nil {
		return nil, err
	}
	if err := m.notifies(); err != nil {
		return nil, err
	}
	if err := m.prepare(); err != nil {
		return nil, err
	}
	if err := m.start(); err != nil {
		return nil, err
	}
	serving := m.runtime.Trace.Begin("serve the init until it is ready")
	err := m.child.Serve(compile.Ready, m.serve)
	serving.End()
	if err != nil {
		return nil, m.died(err)
	}
	if err := m.settle(); err != nil {
		return nil, err
	}
	created := &Created{Container: m.Container, child: m.child, maker: m}
	if m.o.Attached {
		return created, nil
	}
	if err := m.child.Answer(); err != nil {
		return nil, err
	}
	m.child.Detach()
	m.Release()
	return created, nil
}

func (m *maker) start() error {
	m.spawn.Program = func(f *compile.Facts) (*program.Program, error) { return compile.Container(m.plan, f) }
	m.spawn.Trace = m.runtime.Trace
	starting := m.runtime.Trace.Begin("launch the init")
	child, err := m.spawn.Start()
	starting.End()
	for _, fd := range m.fds {
		unix.Close(fd)
	}
	m.fds = nil
	if err != nil {
		return err
	}
	m.child = child
	return nil
}

// settle makes the container known: its record, its pid file, its pidfd.
func (m *maker) settle() error {
	defer m.runtime.Trace.Begin("record the container").End()
	s, err := statOf(m.child.Pid)
	if err != nil {
		return fmt.Errorf("container %s: its first process %d: %w", m.ID, m.child.Pid, err)
	}
	if err := m.sameMappings(); err != nil {
		return err
	}
	if m.rdt != nil {
		if err := m.rdt.Join(m.child.Pid); err != nil {
			return fmt.Errorf("config.json %w", err)
		}
	}
	m.hooked = true // what fails from here on is a container taken down
	m.Pid, m.StartTime = m.child.Pid, s.StartTime
	if err := m.register(); err != nil {
		return err
	}
	if err := m.adjustOOM(m.child.Pid, m.plan.Process.OOMScoreAdj, "/process"); err != nil {
		return err
	}
	if m.o.PidFile != "" {
		if err := writePidFile(m.o.PidFile, m.Pid); err != nil {
			return err
		}
	}
	if m.o.PidfdSocket != "" {
		if err := sendDescriptor(m.o.PidfdSocket, "pidfd", m.child.PidFD); err != nil {
			return fmt.Errorf("--pidfd-socket: %w", err)
		}
	}
	return m.save()
}

// died explains a first process that ended before the container was ready.
func (m *maker) died(err error) error {
	if !errors.Is(err, launch.ErrExecuted) {
		return err
	}
	status, werr := m.child.Wait()
	m.child.Close()
	m.child = nil
	if werr != nil {
		return fmt.Errorf("container %s: its first process ended before it was ready: %w", m.ID, werr)
	}
	if status.Signaled() {
		hint := ""
		if status.Signal() == unix.SIGKILL {
			hint = m.killedBy()
		}
		return fmt.Errorf("container %s: its first process was killed by %s before it was ready%s", m.ID, unix.SignalName(status.Signal()), hint)
	}
	return fmt.Errorf("container %s: its first process exited with %d before it was ready", m.ID, status.ExitStatus())
}

// fail undoes what was made.
func (m *maker) fail() {
	for _, fd := range m.fds {
		unix.Close(fd)
	}
	if m.child != nil {
		m.child.Kill()
	}
	if m.hooked {
		// "Continue the lifecycle at step 12" (runtime.md): the hooks that have run
		// get their counterparts.
		m.poststop(&m.plan.Hooks)
	}
	m.undoUnit()
	if m.group != nil {
		if err := m.group.destroy(); err != nil {
			m.runtime.warn("container %s: %v", m.ID, err)
		}
	}
	if m.rdt != nil {
		if err := m.rdt.Remove(); err != nil {
			m.runtime.warn("container %s: %v", m.ID, err)
		}
	}
	m.removeFolder()
	m.Close()
}

// Go lets the first process of an attached container execute the user's program.
// The poststart hooks have run when it returns.
func (c *Created) Go() error {
	defer c.runtime.Trace.Begin("let it execute its program").End()
	if err := c.child.Answer(); err != nil {
		return err
	}
	err := c.child.Serve(0, c.maker.serve)
	if !errors.Is(err, launch.ErrExecuted) {
		return err
	}
	if signal, early := c.child.EndedEarly(); early {
		return killedEarly(c.ID, signal)
	}
	c.child.Close() // it has nothing to say any more
	c.Release()
	return c.poststart(&c.maker.plan.Hooks)
}

// Process returns the first process of an attached container, to wait for.
func (c *Created) Process() *launch.Child { return c.child }

// Abandon undoes an attached container that could not be started.
func (c *Created) Abandon() { c.maker.fail() }
