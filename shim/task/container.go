package task

import (
	"context"
	"os"
	"sync"
	"syscall"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/bundle"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/guard"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
	"github.com/berth-runtime/berth/shim/reaper"
	"github.com/berth-runtime/berth/shim/stdio"
)

// container is a container of this shim.
type container struct {
	service *Service
	id      string
	bundle  string
	options *options.Options
	config  *bundle.Config
	engine  engine.Engine
	leader  string // bundle of the leader of its group, when that is another

	// made is set, under the service's lock, when Create has succeeded.
	made bool
	// making is closed when Create has ended, however it did.
	making chan struct{}

	// change keeps the calls apart that change the container as a whole.
	change sync.Mutex
	// restore is what the container comes from, until it is started.
	restore *engine.Restore

	mu     sync.Mutex // guards what follows, and the processes
	handle engine.Container
	init   *process
	execs  map[string]*process
	pausing,
	paused bool
	// checkpointing holds the init's exit back: a checkpoint that ends the container
	// is told of first.
	checkpointing bool

	slot *keeper.Slot // nil without a keeper

	anew     bool          // its cgroup is to be watched anew, by this program
	cgroup   engine.Cgroup // nil if it could not be opened
	stopOOM  func()
	oomKills uint64 // OOM kills, as far as is known
	oomTold  uint64 // that TaskOOM has told of
}

// state is where a process is in its life.
type state int

const (
	created state = iota
	starting
	running
	stopped
)

// process is the init of a container, or an exec. The container's lock guards it.
type process struct {
	container *container
	execID    string // "" for the init
	config    stdio.Config
	spec      []byte // of an exec

	// start keeps Start and Delete of an exec apart.
	start sync.Mutex

	state state
	pid   int
	child *reaper.Child
	io    *stdio.IO
	// ended says that the process has ended, as exit tells, though that may not
	// have been published yet; done is closed when it has been.
	ended bool
	exit  reaper.Exit
	done  chan struct{}
	// failed is set for an exec that could not be started: it is over for who waits, and "created"
	// for who looks.
	failed bool
	// With a keeper, an exec is noted before it executes its program: by what it is served then. In
	// the shim that comes after one that was killed, heldFile is its socket.
	held     engine.Held
	heldFile *os.File
	// settled says that what an end brings with it has been done.
	settled bool
}

func (c *container) newProcess(execID string, config stdio.Config) *process {
	config.ID, config.Namespace, config.Streams = c.id, c.service.Namespace, c.service.Streams
	config.Memory, config.ExecID = c.service.Memory, execID
	config.UID, config.GID = int(c.options.IoUID), int(c.options.IoGID)
	return &process{container: c, execID: execID, config: config, done: make(chan struct{})}
}

func (c *container) process(execID string) (*process, error) {
	if execID == "" {
		return c.init, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.execs[execID]
	if p == nil {
		return nil, Failf(ttrpc.NotFound, "exec %q of container %q is not known to this shim", execID, c.id)
	}
	return p, nil
}

// liveExecs counts the execs whose exit has yet to be published.
func (c *container) liveExecs() int {
	n := 0
	for _, p := range c.execs {
		if p.state == starting || p.state == running {
			n++
		}
	}
	return n
}

// adopt takes over a process that the engine has just made.
func (p *process) adopt(made *engine.Process) error {
	c := p.container
	c.mu.Lock() // so that no end is noted of a process that is not
	defer c.mu.Unlock()
	child, err := c.service.Reaper.Adopt(made.Pid, p.onExit)
	if err != nil {
		if made.Console != nil {
			made.Console.Close()
		}
		return err
	}
	told := p.pid == made.Pid
	p.pid, p.child = made.Pid, child
	if told {
		c.keep() // its streams have begun, and its terminal is theirs
	} else {
		p.io.Started(made.Console, c.kept())
	}
	return nil
}

// onExit is told by the reaper that the process has ended.
func (p *process) onExit(e reaper.Exit) {
	c := p.container
	c.mu.Lock()
	defer c.mu.Unlock()
	p.ended, p.exit = true, e
	c.keep()
	switch {
	case p.execID == "":
		// What is left may have to be killed first, which takes a call of the engine.
		c.service.work.do(c.initEnded)
	case e.Status == killed:
		c.service.work.do(func() { c.killedExecEnded(p) })
	default:
		p.settled = true
		c.settle(p)
	}
}

func (c *container) killedExecEnded(p *process) {
	c.guarded(c.tellOOM)
	c.mu.Lock()
	defer c.mu.Unlock()
	p.settled = true
	c.settle(p)
}

// killed is the status of what SIGKILL has ended.
const killed = 128 + int(syscall.SIGKILL)

// guarded does what an exit may be published without.
func (c *container) guarded(f func()) {
	_ = guard.Do(c.service.Log, func() error {
		f()
		return nil
	})
}

// initEnded prepares the container for the exit of its init to be published.
func (c *container) initEnded() {
	ctx := context.Background()
	c.mu.Lock()
	handle, paused, exit := c.handle, c.paused || c.pausing, c.init.exit
	c.mu.Unlock()
	// Systemd is about to remove the cgroup of a unit that has ended: what it died
	// of is read first, for that is asked of us; the other counters may be as of an
	// earlier reading.
	c.guarded(func() {
		c.tellOOM()
		if exit.Status == killed {
			c.readStats()
		}
	})
	c.guarded(func() {
		if handle == nil {
			return
		}
		if c.config.SharedPid {
			// Nothing else ends the rest of the container.
			handle.Kill(ctx, syscall.SIGKILL, true)
		}
		if paused {
			// The rest has been sent its SIGKILL, and is frozen.
			handle.Resume(ctx)
		}
	})
	if err := bundle.SaveEnd(c.bundle, bundle.End{Pid: exit.Pid, Status: exit.Status, At: exit.At}); err != nil {
		c.service.Log("note the exit of " + c.id + ": " + err.Error())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.init.settled = true
	c.settle(c.init)
}

// tellOOM looks for OOM kills that the watch has not reported yet:
// it comes later than the ends that they bring about, which are published after
// them.
func (c *container) tellOOM() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cgroup == nil {
		return
	}
	if kills, err := c.cgroup.OOMKills(); err == nil {
		c.oomRisen(kills)
	}
}

// oomRisen notes the count of kills and publishes its rise, once; while a process
// is starting that waits for its start to be told of, for the kill may be its end.
// The lock must be held.
func (c *container) oomRisen(kills uint64) {
	c.oomKills = max(c.oomKills, kills)
	if !c.anyStarting() {
		c.publishOOM()
	}
}

func (c *container) publishOOM() {
	if c.oomKills > c.oomTold {
		c.oomTold = c.oomKills
		c.publish(&wire.TaskOOM{ContainerID: c.id})
	}
}

func (c *container) anyStarting() bool {
	for _, p := range c.execs {
		if p.state == starting {
			return true
		}
	}
	return c.init.state == starting
}

// settle publishes the exit of a process, once it may be: not while it is still
// starting, for the start comes first, and for the init not while an exec's exit
// is still to come. The container's lock must be held.
func (c *container) settle(p *process) {
	if p.state == starting || p.state == stopped {
		return
	}
	c.publishOOM()
	if !p.ended || !p.settled {
		return
	}
	if p.execID == "" && (c.checkpointing || c.liveExecs() > 0) {
		return
	}
	p.state = stopped
	if p.execID == "" {
		c.paused, c.pausing = false, false
	}
	c.publish(&wire.TaskExit{
		ContainerID: c.id, ID: p.eventID(), Pid: uint32(p.pid),
		ExitStatus: uint32(p.exit.Status), ExitedAt: wire.Time(p.exit.At),
	})
	close(p.done)
	if p.execID != "" {
		c.settle(c.init)
	}
}

// eventID is how a process is called in events.
func (p *process) eventID() string {
	if p.execID == "" {
		return p.container.id
	}
	return p.execID
}
