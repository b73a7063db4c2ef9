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

// Run serves until the shim is shut down or told to leave.
func Run(a *bootstrap.Args, config Config) error {
	logger := newLogger(a)
	// A few hundred kilobytes live: with the usual 100 the heap would grow to 4 MiB.
	debug.SetGCPercent(40)
	// The log is a FIFO that loses its reader when containerd restarts, and the
	// runtime takes a SIGPIPE on descriptor 2 for deadly unless it is ignored.
	signal.Ignore(unix.SIGPIPE)

	var own unix.Stat_t
	if err := unix.Stat(a.Socket, &own); err != nil {
		return fmt.Errorf("find the shim's own socket: %w", err)
	}
	r, err := reaper.Start()
	if err != nil {
		return err
	}
	if err := unix.SetNonblock(listenerFD, true); err != nil {
		return fmt.Errorf("descriptor %d is not a listening socket: %w", listenerFD, err)
	}
	unix.CloseOnExec(listenerFD)
	listener := os.NewFile(listenerFD, a.Socket)

	var publisher *events.Publisher
	if address := os.Getenv("TTRPC_ADDRESS"); address == "" && a.PublishBinary != "" {
		publisher = events.NewByBinary(a.PublishBinary, a.Address, a.Namespace, r, logger.warn)
	} else {
		publisher = events.New(address, a.Namespace, logger.warn)
	}
	server := ttrpc.NewServer(logger.warn)
	engines := &engineCache{engines: make(map[options.Options]engine.Engine)}
	engines.open = func(o *options.Options) (engine.Engine, error) {
		return config.Engine(o, a.Namespace, r, logger.warn)
	}
	leave := sync.OnceFunc(func() {
		if err := bootstrap.RemoveSocket(a.Socket, &own); err != nil {
			logger.warn("remove the socket: " + err.Error())
		}
		server.Close()
	})
	streams := streaming.New()
	streams.Register(server)
	service := task.New(task.Config{
		Namespace: a.Namespace, Version: config.Version, First: a.ID, Reaper: r, Publish: publisher.Publish,
		Engine: engines.get, Cgroup: openCgroup, Streams: streams, Log: logger.warn, Shutdown: leave,
	})
	service.Register(server)
	sandbox.New(service).Register(server)
	idle := time.AfterFunc(idlePause, giveBack)
	server.OnCall(func() { idle.Reset(idlePause) })
	handleSignals(logger, leave, service)
	if a.DebugSocket != "" {
		stop, err := debugOn(a.DebugSocket, logger, service)
		if err != nil {
			return err
		}
		defer stop()
	}

	err = server.Serve(listener)
	publisher.Close(flushLimit)
	return err
}

func openCgroup(pid int) (engine.Cgroup, error) {
	return metrics.OfProcess(pid)
}

// debugOn serves the debug socket until stop is called.
func debugOn(path string, logger *logger, service *task.Service) (stop func(), err error) {
	var own unix.Stat_t
	if err := unix.Stat(path, &own); err != nil {
		return nil, fmt.Errorf("find the shim's own debug socket: %w", err)
	}
	if err := unix.SetNonblock(debugFD, true); err != nil {
		return nil, fmt.Errorf("descriptor %d is not a listening socket: %w", debugFD, err)
	}
	unix.CloseOnExec(debugFD)
	listener := os.NewFile(debugFD, path)
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

// handleSignals leaves without harm to the containers when told to, and writes
// what the shim is doing into the log on SIGUSR1.
func handleSignals(logger *logger, leave func(), service *task.Service) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT, unix.SIGUSR1)
	go func() {
		for s := range signals {
			if s == unix.SIGUSR1 {
				logger.info("SIGUSR1: what this shim is doing follows")
				logger.text(state(service))
				continue
			}
			leave()
		}
	}()
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
