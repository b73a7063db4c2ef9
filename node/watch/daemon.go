package watch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/berth-runtime/berth/cgroup/systemd/placement"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/enforce"
	"github.com/berth-runtime/berth/node/enforce/record"
	"github.com/berth-runtime/berth/node/machine"
	"github.com/berth-runtime/berth/node/plan"
	"golang.org/x/sys/unix"
)

// Daemon keeps a plan true.
type Daemon struct {
	Machine *machine.Machine
	// Load reads the configuration, at the start and for each reload.
	Load func() (*config.Config, error)
	// Reload asks for a reload.
	Reload <-chan os.Signal
	// Out gets events where there is no journal.
	Out    io.Writer
	Getenv func(string) string
	// Kill ends all processes of a cgroup; nil is the kernel's way.
	Kill func(cgroup string) error

	journal *journal
	notify  notifier
	files   *files
	ends    *ends
	engine  *enforce.Engine
	evictor *evictor
	units   <-chan string
	unhear  context.CancelFunc

	mu    sync.Mutex // guards what follows, which the server reads
	conf  *config.Config
	plan  *plan.Plan
	state state
}

// state is what is told by /metrics and /healthz.
type state struct {
	checked      time.Time
	unmended     map[string]string // settings that could not be mended, and why
	drifts       map[[2]string]int // by target and name
	mended       int
	failures     int
	reloads      int
	reloadFailed string
	lookFailed   string
	mendFailed   string
	recent       []time.Time // drifts, to notice a fight
	evictions    map[resource.Name]int
}

// settle is how long after a change is looked at what else changed with it.
const settle = 50 * time.Millisecond

// Run does the work until ctx is done. Nothing is undone at the end: limits
// hold while the daemon is restarted.
func (d *Daemon) Run(ctx context.Context) error {
	d.journal, d.notify = newJournal(d.Getenv, d.Out), newNotifier(d.Getenv)
	d.state = state{unmended: map[string]string{}, drifts: map[[2]string]int{}, evictions: map[resource.Name]int{}}
	conf, err := d.Load()
	if err != nil {
		return err
	}
	r, err := record.Open(conf.StateDir, d.Machine.BootID())
	if err != nil {
		return err
	}
	defer r.Close()
	d.engine = &enforce.Engine{Machine: d.Machine, Record: r, Say: func(text string) {
		d.journal.write(Event{Name: "step", Priority: info, Message: text})
	}, Tick: d.pet()}
	d.settleDown()
	if d.files, err = newFiles(d.writer); err != nil {
		return err
	}
	defer d.files.close()
	d.evictor = &evictor{d: d, killed: map[string]time.Time{}}
	d.ends = newEnds()
	defer d.ends.close()
	if err := d.begin(ctx, conf); err != nil {
		return err
	}
	defer func() { d.unhear() }()
	stop, err := d.serve(conf.Listen)
	if err != nil {
		return &config.Error{Cause: conf.Cause("listen"), Err: err}
	}
	defer stop()
	d.notify.tell("READY=1\nSTATUS=" + d.status())
	d.loop(ctx)
	d.notify.tell("STOPPING=1")
	return nil
}

// settleDown puts us into supervisor/ of our own unit, where that is delegated on
// cgroup v2: systemd runs ExecReload= in .control/ beside it, which it can't make
// in a cgroup that has processes.
func (d *Daemon) settleDown() {
	// INVOCATION_ID is inherited by all that a service starts, a shell with us in it too: the unit
	// is ours if systemd has executed us (SYSTEMD_EXEC_PID came with systemd 248).
	executed := d.Getenv("SYSTEMD_EXEC_PID")
	ours := executed == strconv.Itoa(os.Getpid()) || executed == "" && os.Getppid() == 1
	if d.Getenv("INVOCATION_ID") == "" || !ours || d.Machine.Root != "" || d.Machine.Cgroups.Mode().String() != "unified" {
		return
	}
	if _, err := placement.Island(d.Machine.Cgroups); err != nil {
		d.journal.write(Event{Name: "placement", Priority: warning, Message: "the unit is not delegated to us (set Delegate=yes in it): " + err.Error()})
	}
}

// begin takes up a configuration: its plan is made and applied.
func (d *Daemon) begin(ctx context.Context, conf *config.Config) error {
	p, err := d.Machine.Prepare(ctx, conf)
	if err != nil {
		return err
	}
	if len(p.Problems) > 0 {
		return errors.Join(p.Problems...)
	}
	for _, w := range p.Warnings {
		d.journal.write(Event{Name: "warning", Priority: warning, Message: w})
	}
	d.mu.Lock()
	d.conf, d.plan = conf, p
	d.mu.Unlock()
	err = d.engine.Apply(ctx, p)
	var stuck *enforce.StuckError
	if err != nil && !errors.As(err, &stuck) {
		return err
	}
	d.note(failures(err))
	if err != nil {
		d.failed("mend", err)
	}
	d.listen(ctx, p)
	// Not the slow look, which would try again at once what failed just now.
	d.check(ctx, &news{})
	return nil
}

// writer says who wrote to a file. What systemd writes it was told to by others.
func (d *Daemon) writer(pid int) string {
	if pid == 1 && d.Machine.Units != nil {
		return ""
	}
	return d.Machine.Describe(pid)
}

// pet gives what keeps the watchdog quiet while memory is reclaimed, which may
// take longer than it waits.
func (d *Daemon) pet() func() {
	var last time.Time
	return func() {
		if now := time.Now(); d.notify.watchdog > 0 && now.Sub(last) > d.notify.watchdog/3 {
			last = now
			d.notify.tell("WATCHDOG=1")
		}
	}
}

// listen asks the kernel and systemd to tell of changes to what the plan sets.
func (d *Daemon) listen(ctx context.Context, p *plan.Plan) {
	if err := d.files.set(watched(d.Machine, p)); err != nil {
		d.journal.write(Event{Name: "watch", Priority: warning, Message: err.Error() + "; changes there are found at the next recheck-interval"})
	}
	if d.unhear != nil {
		d.unhear()
	}
	hearing, cancel := context.WithCancel(ctx)
	d.unhear, d.units = cancel, nil
	if d.Machine.Units == nil {
		return
	}
	names := slices.Collect(maps.Keys(daemonUnits(p)))
	for _, at := range p.Places {
		names = append(names, at.Slice)
	}
	units, err := d.Machine.Units.Changes(hearing, names...)
	if err != nil {
		d.journal.write(Event{Name: "watch", Priority: warning, Message: err.Error() + "; systemd's changes are detected through the kernel's files"})
		return
	}
	d.units = units
}

// watched are the files in which the plan's values show.
func watched(m *machine.Machine, p *plan.Plan) []string {
	var paths []string
	for _, s := range p.Steps {
		switch {
		case s.CheckOnly:
		case s.Kind == plan.SetParent:
			paths = append(paths, m.SettingsFile())
		case s.Kind == plan.SetParameter:
			paths = append(paths, m.ParameterFile(s.Target))
		case s.Kind == plan.SetScore:
			paths = append(paths, m.ScoreFile(s.Process.PID))
		case s.Write != nil:
			if path := m.File(s.Group, s.Write.Controller, s.Write.File); path != "" {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

func (d *Daemon) loop(ctx context.Context) {
	recheck := time.NewTicker(d.conf.Recheck)
	defer recheck.Stop()
	var dog <-chan time.Time
	if d.notify.watchdog > 0 {
		t := time.NewTicker(d.notify.watchdog / 3)
		defer t.Stop()
		dog = t.C
	}
	memory := time.NewTicker(evictEvery)
	defer memory.Stop()
	again, looks := time.NewTimer(time.Hour), 0 // for daemons, once one of them starts or ends
	again.Stop()
	defer again.Stop()
	look := func(n *news) {
		d.gather(ctx, n)
		d.check(ctx, n)
		if n.daemons {
			again.Reset(lookAgain[0])
			looks = 1
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-dog:
			d.notify.tell("WATCHDOG=1")
		case <-d.Reload:
			d.reload(ctx)
			recheck.Reset(d.conf.Recheck)
		case w := <-d.files.events:
			look(&news{writers: map[string]string{w.path: w.who}})
		case name, open := <-d.units:
			n := &news{}
			if d.hear(n, name, open); open {
				look(n)
			}
		case <-d.ends.ended:
			look(&news{daemons: true})
		case <-again.C:
			d.check(ctx, &news{daemons: true})
			if looks < len(lookAgain) {
				again.Reset(lookAgain[looks])
				looks++
			}
		case <-memory.C:
			d.evictor.look()
		case <-recheck.C:
			if d.units == nil {
				d.listen(ctx, d.plan)
			}
			d.check(ctx, nil)
		}
	}
}

// hear takes a signal of systemd.
func (d *Daemon) hear(n *news, unit string, open bool) {
	if !open {
		d.units = nil // systemd was restarted, or the bus; the slow look takes it up again
		return
	}
	n.daemons = n.daemons || daemonUnits(d.plan)[unit]
}

// gather waits a moment for what else changes, since a hand seldom does one thing.
func (d *Daemon) gather(ctx context.Context, n *news) {
	if n.writers == nil {
		n.writers = map[string]string{}
	}
	timer := time.NewTimer(settle)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case w := <-d.files.events:
			n.writers[w.path] = w.who
		case name, open := <-d.units:
			d.hear(n, name, open)
		case <-d.ends.ended:
			n.daemons = true
		case <-timer.C:
			return
		}
	}
}

func (d *Daemon) reload(ctx context.Context) {
	d.notify.reloading()
	conf, err := d.Load()
	if err == nil && (conf.StateDir != d.conf.StateDir || conf.Listen != d.conf.Listen) {
		err = errors.New("state-dir and listen can't change while it runs: systemctl restart berth-node")
	}
	if err == nil {
		err = d.begin(ctx, conf)
	}
	d.mu.Lock()
	d.state.reloads++
	d.state.reloadFailed = ""
	if err != nil {
		d.state.reloadFailed = err.Error()
	}
	d.mu.Unlock()
	if err != nil {
		d.journal.write(Event{Name: "reload", Priority: failure, Message: "the configuration was rejected, the previous one stays in effect: " + err.Error()})
	} else {
		d.journal.write(Event{Name: "reload", Priority: notice, Message: "the configuration was read again"})
	}
	d.notify.tell("READY=1\nSTATUS=" + d.status())
}

func (d *Daemon) status() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := 0
	for _, s := range d.plan.Steps {
		if !s.CheckOnly {
			held++
		}
	}
	held -= len(d.state.unmended)
	return fmt.Sprintf("%d settings in effect, %d not; %d drifts reverted", held, len(d.state.unmended), d.state.mended)
}

// removeSocket removes what a killed server has left: a socket without a listener. Any other
// file may be in use.
func removeSocket(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s is there already, and is not a socket; choose another path", path)
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, unix.ECONNREFUSED) {
		return fmt.Errorf("%s is a socket that may be in use; choose another path, or remove it", path)
	}
	return os.Remove(path)
}

// listenOn opens the address of the server.
func listenOn(address string) (net.Listener, error) {
	if path, ok := cutUnix(address); ok {
		if err := removeSocket(path); err != nil {
			return nil, err
		}
		return net.Listen("unix", path)
	}
	return net.Listen("tcp", address)
}
