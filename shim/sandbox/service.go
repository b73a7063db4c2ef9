package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/task"
)

// The words that CRI has for a sandbox's state.
const (
	ready    = "SANDBOX_READY"
	notReady = "SANDBOX_NOTREADY"
)

// Service is the sandbox service of one shim.
type Service struct {
	tasks *task.Service

	// change keeps the calls apart that change the sandbox; mu guards box itself,
	// and is held for moments only.
	change sync.Mutex
	mu     sync.Mutex
	box    *box
}

// New makes a service without a sandbox, whose containers are to be tasks.
func New(tasks *task.Service) *Service { return &Service{tasks: tasks} }

// Register makes the service answer on a server.
func (s *Service) Register(server *ttrpc.Server) {
	server.Long("containerd.runtime.sandbox.v1.Sandbox", "WaitSandbox")
	server.Register("containerd.runtime.sandbox.v1.Sandbox", map[string]ttrpc.Handler{
		"CreateSandbox": task.Method(s.create), "StartSandbox": task.Method(s.start), "Platform": task.Method(s.platform),
		"StopSandbox": task.Method(s.stop), "WaitSandbox": task.Method(s.wait), "SandboxStatus": task.Method(s.status),
		"PingSandbox": task.Method(s.ping), "ShutdownSandbox": task.Method(s.shutdown), "SandboxMetrics": task.Method(s.metrics),
	})
}

// find gives the sandbox, if it is the one that is meant.
func (s *Service) find(id string) (*box, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.box == nil || s.box.id != id {
		return nil, task.Failf(ttrpc.NotFound, "sandbox %q is not known to this shim", id)
	}
	return s.box, nil
}

func (s *Service) create(ctx context.Context, r *wire.CreateSandboxRequest) (wire.Message, error) {
	if r.SandboxID == "" || r.BundlePath == "" {
		return nil, task.Failf(ttrpc.InvalidArgument, "a sandbox needs an id and a bundle")
	}
	s.change.Lock()
	defer s.change.Unlock()
	s.mu.Lock()
	old := s.box
	s.mu.Unlock()
	if old != nil && old.id == r.SandboxID && ttrpc.Resumed(ctx) {
		return &wire.CreateSandboxResponse{}, nil
	}
	if old != nil {
		return nil, task.Failf(ttrpc.AlreadyExists, "this shim has sandbox %q already, and can have one", old.id)
	}
	if err := s.tasks.Lead(r.BundlePath); err != nil {
		return nil, err
	}
	b, err := newBox(s.tasks, r)
	if err != nil {
		return nil, err
	}
	if ttrpc.Resumed(ctx) {
		if err := s.tasks.Undo(ctx, b.engine, b.id, b.bundle); err != nil {
			b.release()
			return nil, err
		}
	}
	// A client that has gone away must not leave half of a sandbox behind.
	if err := b.make(context.Background(), r.Rootfs); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.box = b
	s.mu.Unlock()
	return &wire.CreateSandboxResponse{}, nil
}

func (s *Service) start(ctx context.Context, r *wire.StartSandboxRequest) (wire.Message, error) {
	s.change.Lock()
	defer s.change.Unlock()
	b, err := s.find(r.SandboxID)
	if err != nil {
		return nil, err
	}
	if err := b.start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	spec, err := os.ReadFile(filepath.Join(b.bundle, "config.json"))
	if err != nil {
		return nil, err
	}
	return &wire.StartSandboxResponse{
		Pid: uint32(b.pid), CreatedAt: wire.Time(b.started), Spec: &wire.Any{TypeURL: wire.SpecURL, Value: spec},
	}, nil
}

func (s *Service) platform(_ context.Context, r *wire.PlatformRequest) (wire.Message, error) {
	if _, err := s.find(r.SandboxID); err != nil {
		return nil, err
	}
	return &wire.PlatformResponse{Platform: &wire.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}}, nil
}

func (s *Service) stop(ctx context.Context, r *wire.StopSandboxRequest) (wire.Message, error) {
	s.change.Lock()
	defer s.change.Unlock()
	b, err := s.find(r.SandboxID)
	if err != nil {
		return nil, err
	}
	s.tasks.StopAll(ctx, time.Duration(r.TimeoutSecs)*time.Second)
	if err := b.takeDown(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	return &wire.StopSandboxResponse{}, nil
}

func (s *Service) wait(ctx context.Context, r *wire.WaitSandboxRequest) (wire.Message, error) {
	b, err := s.find(r.SandboxID)
	if err != nil {
		return nil, err
	}
	select {
	case <-b.done:
		return &wire.WaitSandboxResponse{ExitStatus: uint32(b.exit.Status), ExitedAt: wire.Time(b.exit.At)}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *Service) status(_ context.Context, r *wire.SandboxStatusRequest) (wire.Message, error) {
	b, err := s.find(r.SandboxID)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	answer := &wire.SandboxStatusResponse{
		SandboxID: b.id, Pid: uint32(b.pid), State: notReady, CreatedAt: wire.Time(b.started), ExitedAt: wire.Time(time.Time{}),
	}
	switch {
	case b.ended():
		answer.ExitedAt = wire.Time(b.exit.At)
	case !b.started.IsZero():
		answer.State = ready
	}
	if r.Verbose {
		info := append([]byte(`{"pid":`), strconv.Itoa(b.pid)...)
		info = json.AppendString(append(info, `,"bundle":`...), b.bundle)
		answer.Info = map[string]string{"info": string(append(info, '}'))}
	}
	return answer, nil
}

func (s *Service) ping(_ context.Context, r *wire.PingRequest) (wire.Message, error) {
	b, err := s.find(r.SandboxID)
	if err != nil {
		return nil, err
	}
	if b.ended() {
		return nil, task.Failf(ttrpc.FailedPrecondition, "sandbox %q has ended", b.id)
	}
	return &wire.PingResponse{}, nil
}

// shutdown takes everything down and has the shim leave, which it does whatever
// fails before: containerd calls it once, and has delete clean up after us.
func (s *Service) shutdown(ctx context.Context, r *wire.ShutdownSandboxRequest) (wire.Message, error) {
	s.change.Lock()
	defer s.change.Unlock()
	ctx = context.WithoutCancel(ctx)
	b, err := s.find(r.SandboxID)
	s.mu.Lock()
	none := s.box == nil // its creation failed
	s.mu.Unlock()
	if err != nil && !none {
		return nil, err
	}
	s.tasks.StopAll(ctx, 0)
	if b != nil {
		if err := b.takeDown(ctx); err != nil {
			s.tasks.Log("take sandbox " + b.id + " down: " + err.Error())
		}
	}
	s.tasks.Leave(ctx)
	return &wire.ShutdownSandboxResponse{}, nil
}

func (s *Service) metrics(_ context.Context, r *wire.SandboxMetricsRequest) (wire.Message, error) {
	b, err := s.find(r.SandboxID)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	err = engine.ErrNoStats
	var kind string
	var message []byte
	if b.cgroup != nil {
		kind, message, err = b.cgroup.Stats()
	}
	if errors.Is(err, engine.ErrNoStats) {
		return nil, task.Failf(ttrpc.NotFound, "sandbox %q has no cgroup", b.id)
	}
	if err != nil {
		return nil, err
	}
	data := &wire.Any{TypeURL: kind, Value: message}
	return &wire.SandboxMetricsResponse{Metrics: &wire.Metric{Timestamp: wire.Time(time.Now()), ID: b.id, Data: data}}, nil
}
