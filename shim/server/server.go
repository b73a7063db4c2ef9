package server

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/bootstrap"
	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/events"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/streaming"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/keeper"
	"github.com/berth-runtime/berth/shim/metrics"
	"github.com/berth-runtime/berth/shim/reaper"
	"github.com/berth-runtime/berth/shim/sandbox"
	"github.com/berth-runtime/berth/shim/task"
)

const (
	// listenerFD is where start leaves the listening socket.
	listenerFD = 3
	// debugFD is where it leaves that of the debug socket, if there is one.
	debugFD = 4
	// flushLimit is how long the last events may take at the end. containerd has
	// its answer by then, and does not wait.
	flushLimit = 5 * time.Second
	// idlePause is how long nothing must happen until memory goes back to the
	// system.
	idlePause = 2 * time.Second
)

// Config is what a server is made of besides its command line.
type Config struct {
	Version string
	// Engine makes the engine for a container's options.
	Engine func(o *options.Options, namespace string, r *reaper.Reaper, warn func(string)) (engine.Engine, error)
}

// shim is all parts of a server.
type shim struct {
	args   *bootstrap.Args
	config Config
	logger *logger
	own    unix.Stat_t // the socket

	listener, debug *os.File
	reaper          *reaper.Reaper
	publisher       *events.Publisher
	server          *ttrpc.Server
	tasks           *task.Service
	sandboxes       *sandbox.Service
	leave           func()
	signals         chan os.Signal
	upgrades        upgrades
	memory          *keeper.Memory // nil without a keeper
}

// Run serves until the shim is shut down or told to leave.
func Run(a *bootstrap.Args, config Config) error {
	// The log is a FIFO that loses its reader when containerd restarts, and the
	// runtime takes a SIGPIPE on descriptor 2 for deadly unless it is ignored.
	signal.Ignore(unix.SIGPIPE)
	memory, err := keeper.Open()
	if err != nil {
		return err
	}
	_, _, revived := memory.Kept()
	s := &shim{args: a, config: config, logger: newLogger(a, a.TakeOver == "" && !revived), signals: make(chan os.Signal, 8), memory: memory}
	memory.OnFull(func() { s.logger.warn(keeper.ErrFull.Error()) })
	signal.Notify(s.signals, served...)
	// A few hundred kilobytes live: with the usual 100 the heap would grow to 4 MiB.
	debug.SetGCPercent(40)
	if revived {
		if err := s.revive(); err != nil {
			return err
		}
	} else if a.TakeOver != "" {
		if err := s.succeed(); err != nil {
			return err
		}
	} else if err := s.begin(); err != nil {
		return err
	}
	go s.handle()
	if s.debug != nil {
		stop, err := debugOn(s.debug, s.logger, s.tasks)
		if err != nil {
			return err
		}
		defer stop()
	}
	err = s.server.Serve(s.listener)
	s.publisher.Close(flushLimit)
	return err
}

// begin makes the server of a shim that has just been started.
func (s *shim) begin() (err error) {
	if s.reaper, err = reaper.Prepare(); err != nil {
		return err
	}
	s.reaper.Keep(s.memory)
	s.reaper.Resume()
	if s.listener, err = inherited(listenerFD, s.args.Socket); err != nil {
		return err
	}
	if s.args.DebugSocket != "" {
		if s.debug, err = inherited(debugFD, s.args.DebugSocket); err != nil {
			return err
		}
	}
	config, err := s.assemble()
	if err != nil {
		return err
	}
	s.tasks = task.New(config)
	s.serve()
	if s.memory != nil {
		if err := s.moreLikelyVictim(); err != nil {
			return err
		}
	}
	s.publisher.Resume()
	return nil
}

// inherited is a listening socket that start has left.
func inherited(fd int, path string) (*os.File, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("descriptor %d is not a listening socket: %w", fd, err)
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), path), nil
}

// assemble makes the parts that the tasks need, which come next.
func (s *shim) assemble() (config task.Config, err error) {
	a, logger := s.args, s.logger
	if err := unix.Stat(a.Socket, &s.own); err != nil {
		return config, fmt.Errorf("find the shim's own socket: %w", err)
	}
	if address := os.Getenv("TTRPC_ADDRESS"); address == "" && a.PublishBinary != "" {
		s.publisher = events.NewByBinary(a.PublishBinary, a.Address, a.Namespace, s.reaper, logger.warn)
	} else {
		s.publisher = events.New(address, a.Namespace, logger.warn)
	}
	if s.memory != nil {
		s.publisher.Keep(s.memory)
	}
	s.server = ttrpc.NewServer(logger.warn)
	s.server.Keep(s.memory)
	engines := &engineCache{engines: make(map[options.Options]engine.Engine)}
	engines.open = func(o *options.Options) (engine.Engine, error) {
		return s.config.Engine(o, a.Namespace, s.reaper, logger.warn)
	}
	s.leave = sync.OnceFunc(func() {
		if err := bootstrap.RemoveSocket(a.Socket, &s.own); err != nil {
			logger.warn("remove the socket: " + err.Error())
		}
		s.server.Close()
	})
	streams := streaming.New()
	streams.Register(s.server)
	return task.Config{
		Namespace: a.Namespace, Version: s.config.Version, First: a.ID, Reaper: s.reaper, Publish: s.publisher.Publish, Memory: s.memory,
		Engine: engines.get, Cgroup: openCgroup, FindCgroup: metrics.TakeOver, Streams: streams, Log: logger.warn, Shutdown: s.leave,
	}, nil
}

// serve makes all services answer.
func (s *shim) serve() {
	s.tasks.Register(s.server)
	s.sandboxes = sandbox.New(s.tasks)
	s.sandboxes.Register(s.server)
	s.upgrades.wanted = make(chan *upgrade, 1)
	s.server.Register(task.UpgradeService, map[string]ttrpc.Handler{task.UpgradeMethod: task.Method(s.upgrade)})
	s.server.Long(task.UpgradeService, task.UpgradeMethod)
	idle := time.AfterFunc(idlePause, giveBack)
	s.server.OnCall(func() { idle.Reset(idlePause) })
}

func openCgroup(pid int) (engine.Cgroup, error) {
	return metrics.OfProcess(pid)
}

// debugOn serves the debug socket until stop is called.
func debugOn(listener *os.File, logger *logger, service *task.Service) (stop func(), err error) {
	path := listener.Name()
	var own unix.Stat_t
	if err := unix.Stat(path, &own); err != nil {
		return nil, fmt.Errorf("find the shim's own debug socket: %w", err)
	}
	var leaving atomic.Bool
	go func() {
		if err := serveDebug(listener, service); !leaving.Load() {
			logger.warn("debug socket: " + err.Error())
		}
	}()
	return func() {
		if err := bootstrap.RemoveSocket(path, &own); err != nil {
			logger.warn("remove the debug socket: " + err.Error())
		}
		leaving.Store(true)
		listener.Close()
	}, nil
}

// served are the signals that the shim does something about.
var served = []os.Signal{unix.SIGTERM, unix.SIGINT, unix.SIGUSR1, unix.SIGHUP}

// handle leaves without harm to the containers when told to, writes what the shim is doing into the
// log on SIGUSR1, and has another program take its place when that is asked for, or on SIGHUP.
func (s *shim) handle() {
	var again <-chan time.Time
	for {
		select {
		case signal := <-s.signals:
			switch signal {
			case unix.SIGUSR1:
				s.logger.info("SIGUSR1: what this shim is doing follows")
				s.logger.text(state(s.tasks))
			case unix.SIGHUP:
				s.want("")
			default:
				s.leave()
			}
		case <-s.upgrades.wanted:
			again = s.try()
		case <-again:
			again = s.try()
		}
	}
}

// engineCache keeps one engine for all containers with the same options.
type engineCache struct {
	open func(*options.Options) (engine.Engine, error)

	mu      sync.Mutex
	engines map[options.Options]engine.Engine
}

func (c *engineCache) get(o *options.Options) (engine.Engine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.engines[*o]; e != nil {
		return e, nil
	}
	e, err := c.open(o)
	if err == nil {
		c.engines[*o] = e
	}
	return e, err
}
