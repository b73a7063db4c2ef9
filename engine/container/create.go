package container

import (
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/atomicfile"
	"github.com/berth-runtime/berth/internal/resctrl"
	"github.com/berth-runtime/berth/internal/settings"
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
	// KeepAffinity leaves the container on the CPUs that its caller is pinned to.
	KeepAffinity bool
	// Attached containers are not started by Start: they are let go by the
	// Created that Create returns.
	Attached bool
	Scratch  func(*Scratch) error // see there; or nil
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
	host  *machine
	spawn spawn
	bus   *bus // nil where systemd has nothing to do with it
	unit  bool // the unit has been started
	group *group
	child *launch.Child
	fds   []int // ours, closed when the child has its own

	rdt      *resctrl.Group
	hooked   bool // hooks have been run, or tried
	copyFrom int  // the source of a tmpcopyup, between its two Asks

	plain []*compile.Layer // that the kernel refuses as overlays
}

// Create makes a container from a bundle, up to the point where only the user's
// program is left to be executed. When it fails, nothing is left.
func (r *Runtime) Create(id string, o *CreateOptions) (*Created, error) {
	defer r.Trace.Begin("create").End()
	m, config, err := r.newMaker(id, o)
	if err != nil {
		return nil, err
	}
	defer m.hangUp()
	created, err := m.make(config)
	if err != nil {
		m.fail()
		return nil, m.withHint(err)
	}
	return created, nil
}

// newMaker plans a container and takes its id.
func (r *Runtime) newMaker(id string, o *CreateOptions) (_ *maker, config []byte, err error) {
	if err := CheckID(id); err != nil {
		return nil, nil, err
	}
	m := &maker{o: o}
	defer func() {
		if err != nil {
			m.hangUp()
		}
	}()
	if r.Driver == settings.Systemd && !r.NoCgroup {
		m.bus = dialSystemd() // it answers while the config is read
	}
	if config, err = r.planned(m, id, m.askSystemd); err != nil {
		return nil, nil, err
	}
	if m.spec.Process == nil && o.Attached {
		return nil, nil, errors.New(noProcess)
	}
	if err := o.IO.check(m.plan.Process.Terminal); err != nil {
		return nil, nil, err
	}
	claiming := r.Trace.Begin("take the id")
	m.Container, err = r.claim(id)
	claiming.End()
	if err != nil {
		return nil, nil, err
	}
	return m, config, nil
}

// planned reads the configuration and plans it, on a machine with what systemd says of itself.
func (r *Runtime) planned(m *maker, id string, askSystemd func(*machine) error) (config []byte, err error) {
	reading := r.Trace.Begin("read and check config.json")
	config, s, warnings, err := m.o.load()
	reading.End()
	if err != nil {
		return nil, err
	}
	for _, w := range warnings {
		r.warn("config.json: %s", w.Error())
	}
	probing := r.Trace.Begin("look at the host")
	h, err := lookAtMachine()
	probing.End()
	if err != nil {
		return nil, err
	}
	options := r.planOptions(id, m.o)
	if err := r.choosePlace(s, h, &options, askSystemd); err != nil {
		return nil, err
	}
	h.SELinux = s.Linux != nil && s.Linux.MountLabel != "" && host.HasSELinux()
	planning := r.Trace.Begin("plan")
	p, err := plan.New(s, h.Host, options)
	planning.End()
	if err != nil {
		return nil, &spec.ConfigError{Err: err}
	}
	for _, w := range p.Warnings {
		r.warn("config.json: %s", w)
	}
	if r.OnPlan != nil {
		r.OnPlan(p, host.Missing(h.Host, h.Cgroups))
	}
	if err := r.watch(p, &p.Process, &m.o.IO); err != nil {
		return nil, err
	}
	m.spec, m.plan, m.host = s, p, h
	return config, nil
}

func (r *Runtime) planOptions(id string, o *CreateOptions) plan.Options {
	options := plan.Options{
		ID: id, Bundle: o.Bundle, NoCgroup: r.NoCgroup, Parent: r.Parent,
		NoPivot: o.NoPivot, NoNewKeyring: o.NoNewKeyring, PreserveFDs: len(o.Preserve),
		Init: o.Init, KeepAffinity: o.KeepAffinity, Listen: o.Listen, Home: r.homeIn, Handed: o.Scratch != nil,
	}
	if o.NotifySocket != "" {
		options.NotifyDir = path.Join(r.Root, id, notifyDir)
	}
	return options
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

// intend puts on record what is to be made, and makes what the processes go into.
func (m *maker) intend(config []byte) error {
	defer m.runtime.Trace.Begin("record the intent, make the cgroup").End()
	m.Record = m.intent()
	if err := atomicfile.Write(m.dir, configFile, config, 0o600); err != nil {
		return err
	}
	// The intent is on record from here on; makeGroup knows more of it where there is a cgroup to
	// make.
	if m.plan.Cgroup.None || m.plan.Cgroup.Unit != nil {
		if err := m.save(); err != nil {
			return err
		}
	}
	if err := m.makeGroup(); err != nil {
		return err
	}
	return m.makeRdt()
}

// intent is the record of a container of which nothing has been made.
func (m *maker) intent() Record {
	r := Record{
		ID: m.plan.ID, OCIVersion: m.spec.Version, Bundle: m.o.Bundle, Rootfs: m.plan.Root.Path,
		Created: time.Now().UTC(), Owner: uint32(os.Geteuid()), Annotations: m.spec.Annotations,
		Systemd: m.plan.Cgroup.Unit != nil, NoPivot: m.plan.NoPivot, NoNewKeyring: m.o.NoNewKeyring, NoHooks: m.spec.Hooks == nil, NoProcess: m.spec.Process == nil,
		OwnPids: m.plan.Makes(specs.PIDNamespace), Minded: m.plan.Init,
	}
	if c := &m.plan.Cgroup; !c.None {
		r.Cgroup.Path, r.Cgroup.Payload = c.Path, c.Payload
	}
	if u := m.plan.Cgroup.Unit; u != nil {
		r.Cgroup.Unit = u.Unit
	}
	return r
}

func (m *maker) make(config []byte) (*Created, error) {
	if err := m.intend(config); err != nil {
		return nil, err
	}
	if err := m.makeNotifyDir(); err != nil {
		return nil, err
	}
	if err := m.prepare(opener{m}); err != nil {
		return nil, err
	}
	if err := m.start(); err != nil {
		return nil, err
	}
	serving := m.runtime.Trace.Begin("serve the init until it is ready")
	err := m.child.Serve(program.AskReady, m.serve)
	serving.End()
	if err != nil {
		return nil, m.died(err)
	}
	m.warnOfPlain()
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
	starting := m.runtime.Trace.Begin("launch the init")
	child, err := m.spawn.start(m.compile)
	starting.End()
	for _, fd := range m.fds {
		unix.Close(fd)
	}
	m.fds = nil
	if err != nil {
		return err
	}
	m.child = child
	child.While(func() bool { return m.group != nil && m.groupFrozen() })
	return nil
}

func (m *maker) compile(f *compile.Facts) (*program.Program, error) {
	return compile.Container(m.plan, f)
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
			return fmt.Errorf("config.json: %w", err)
		}
	}
	if m.group != nil {
		if err := m.apply(m.group.Group, limitsProcesses); err != nil {
			return err
		}
	}
	m.hooked = true // what fails from here on is a container taken down
	m.Pid, m.StartTime, m.Boot = m.child.Pid, s.Start, bootID()
	if m.Namespaces == (namespaceIDs{}) && (m.privileged() || m.spawn.Facts.Visible) {
		if m.Namespaces, err = lookAtNamespaces(m.Pid); err != nil {
			return fmt.Errorf("container %s: %w", m.ID, err)
		}
	}
	if err := m.register(); err != nil {
		return err
	}
	if !m.spawn.Facts.OwnScore {
		if err := m.adjustOOM(m.child.Pid, &m.plan.Process); err != nil {
			return err
		}
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
	steps := takeDown{group: m.undoGroup, rdt: m.undoRdt, hooks: func() {
		if m.hooked {
			// "Continue the lifecycle at step 12" (runtime.md): the hooks that have run
			// get their counterparts.
			m.poststop(&m.plan.Hooks)
		}
	}}
	_ = steps.do(func(err error) error {
		m.runtime.warn("container %s: %v", m.ID, err)
		return nil
	})
	m.removeFolder()
	m.Close()
}
