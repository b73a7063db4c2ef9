package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
	"github.com/berth-runtime/berth/shim/reaper"
	"github.com/berth-runtime/berth/shim/stdio"
)

// Config is what a service works with.
type Config struct {
	Namespace string
	Version   string
	// First is the container that the shim was started for.
	First  string
	Reaper *reaper.Reaper
	// Publish queues an event; it must not wait,
	// at the instant that changes are made in the memory of a keeper.
	Publish func(e wire.Event, with ...keeper.Change)
	// Memory is that of the keeper, nil without one.
	Memory *keeper.Memory
	// Engine gives the engine for a container's options.
	Engine func(*options.Options) (engine.Engine, error)
	// Cgroup opens the cgroup that a process is in, and FindCgroup the one that Handover has
	// written down.
	Cgroup     func(pid int) (engine.Cgroup, error)
	FindCgroup func(h *wire.HandoverCgroup, pid int, ended bool) (engine.Cgroup, error)
	// Streams are what stdio may name instead of files.
	Streams stdio.Streams
	Log     func(text string)
	// Shutdown is called once, when the shim is to leave.
	Shutdown func()
}

// Service is the task service of one shim.
type Service struct {
	Config

	mu         sync.Mutex
	containers map[string]*container
	expected   map[string]time.Time // containers that a start has announced, and until when
	first      string               // the one that the shim was started for, until something is made in it
	sandbox    string               // bundle of the sandbox that leads them, if there is one
	asked      bool                 // to shut down
	closing    bool
	began      time.Time    // when it began to wait for the first
	slot       *keeper.Slot // of all that but the containers; nil without a keeper

	// work counts what goes on without a call.
	work work
}

// New makes a service without containers.
func New(c Config) *Service {
	s := empty(c)
	s.first, s.began, s.slot = c.First, time.Now(), c.Memory.Slot()
	s.keep()
	time.AfterFunc(expectation, s.nobodyCame)
	return s
}

func empty(c Config) *Service {
	return &Service{Config: c, containers: make(map[string]*container), expected: make(map[string]time.Time)}
}

// Register makes the service answer on a server, as both versions of the task
// service, which have the same messages, and as the shim's own.
func (s *Service) Register(server *ttrpc.Server) {
	methods := map[string]ttrpc.Handler{
		"State": Method(s.state), "Create": Method(s.create), "Start": Method(s.start), "Delete": Method(s.delete),
		"Pids": Method(s.pids), "Pause": Method(s.pause), "Resume": Method(s.resume), "Checkpoint": Method(s.checkpoint),
		"Kill": Method(s.kill), "Exec": Method(s.exec), "ResizePty": Method(s.resizePty), "CloseIO": Method(s.closeIO),
		"Update": Method(s.update), "Wait": Method(s.wait), "Stats": Method(s.stats), "Connect": Method(s.connect),
		"Shutdown": Method(s.shutdown),
	}
	server.Register("containerd.task.v2.Task", methods)
	server.Register("containerd.task.v3.Task", methods)
	server.Long("containerd.task.v2.Task", "Wait")
	server.Long("containerd.task.v3.Task", "Wait")
	server.Register(OwnService, map[string]ttrpc.Handler{ExpectMethod: Method(s.expect), ForgetMethod: Method(s.unexpect)})
}

// Method makes a handler of a function on messages.
func Method[Req any, P interface {
	*Req
	wire.Message
}](f func(context.Context, P) (wire.Message, error)) ttrpc.Handler {
	return func(ctx context.Context, payload []byte) (wire.Message, error) {
		req := P(new(Req))
		if err := wire.Unmarshal(payload, req); err != nil {
			return nil, &ttrpc.Error{Code: ttrpc.InvalidArgument, Text: "read the request: " + err.Error(), Cause: err}
		}
		answer, err := f(ctx, req)
		return answer, withCode(err)
	}
}

// withCode gives an error of an engine or of the system the code that a client
// of containerd branches on.
func withCode(err error) error {
	var coded *ttrpc.Error
	if err == nil || errors.As(err, &coded) {
		return err
	}
	code := ttrpc.CodeOf(err)
	switch {
	case errors.Is(err, engine.ErrNotFound), errors.Is(err, engine.ErrNotRunning):
		code = ttrpc.NotFound
	case errors.Is(err, engine.ErrAlready):
		code = ttrpc.FailedPrecondition
	case errors.Is(err, engine.ErrInvalid):
		code = ttrpc.InvalidArgument
	case errors.Is(err, errors.ErrUnsupported):
		code = ttrpc.Unimplemented
	}
	return &ttrpc.Error{Code: code, Text: err.Error(), Cause: err}
}

// Failf makes an error with the code that it has on the wire.
func Failf(code ttrpc.Code, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &ttrpc.Error{Code: code, Text: err.Error(), Cause: errors.Unwrap(err)}
}

// find gives a container by its id.
func (s *Service) find(id string) (*container, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.containers[id]
	if c == nil || !c.made {
		return nil, Failf(ttrpc.NotFound, "container %q is not known to this shim", id)
	}
	return c, nil
}

// findProcess gives the init of a container or, with an exec id, that exec.
func (s *Service) findProcess(id, execID string) (*container, *process, error) {
	c, err := s.find(id)
	if err != nil {
		return nil, nil, err
	}
	p, err := c.process(execID)
	return c, p, err
}

func (s *Service) connect(_ context.Context, r *wire.ConnectRequest) (wire.Message, error) {
	answer := &wire.ConnectResponse{ShimPid: uint32(os.Getpid()), Version: s.Version}
	// containerd asks this to see whether the shim lives; that the container is
	// not there (yet) is no error then.
	if c, err := s.find(r.ID); err == nil {
		c.mu.Lock()
		answer.TaskPid = uint32(c.init.pid)
		c.mu.Unlock()
	}
	return answer, nil
}

func (s *Service) shutdown(context.Context, *wire.ShutdownRequest) (wire.Message, error) {
	s.mu.Lock()
	s.asked = true
	s.keep()
	s.mu.Unlock()
	s.leaveIfDone()
	return &wire.Empty{}, nil
}

// leaveIfDone ends the shim if it was asked to shut down, has no container and
// awaits none, and no sandbox, which is shut down by a call of its own.
func (s *Service) leaveIfDone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for id, until := range s.expected {
		if !until.After(now) {
			delete(s.expected, id)
		}
	}
	if s.closing || !s.asked || s.sandbox != "" || len(s.containers) > 0 || len(s.expected) > 0 {
		return
	}
	s.closing = true
	go s.Shutdown()
}
