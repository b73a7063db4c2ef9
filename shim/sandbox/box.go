package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/bundle"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
	"github.com/berth-runtime/berth/shim/mounts"
	"github.com/berth-runtime/berth/shim/reaper"
	"github.com/berth-runtime/berth/shim/task"
)

// box is a sandbox.
type box struct {
	id, bundle string
	tasks      *task.Service
	options    *options.Options
	engine     engine.Engine
	handle     engine.Container
	pid        int
	down       bool // taken down; under the service's lock for changes
	// userns is the user namespace to be joined, if there is one, until make is done.
	userns *os.File

	slot *keeper.Slot // nil without a keeper

	done chan struct{} // closed when the process has ended
	exit reaper.Exit   // from then on

	mu      sync.Mutex // guards what follows
	started time.Time
	cgroup  engine.Cgroup // nil if it could not be opened, or is no more
}

// newBox finds out what sandbox is wanted, and writes what it lacks into its bundle.
func newBox(tasks *task.Service, r *wire.CreateSandboxRequest) (*box, error) {
	b := &box{id: r.SandboxID, bundle: r.BundlePath, tasks: tasks, done: make(chan struct{})}
	// The options came with start: those of the request are the pod's.
	var err error
	if b.options, err = options.Load(b.bundle); errors.Is(err, os.ErrNotExist) {
		b.options = new(options.Options)
	} else if err != nil {
		return nil, err
	}
	if b.engine, err = tasks.Engine(b.options); err != nil {
		return nil, task.Failf(ttrpc.InvalidArgument, "%w", err)
	}
	config, err := bundle.ReadConfig(b.bundle)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, task.Failf(ttrpc.InvalidArgument, "%w", err)
	}
	if err == nil && config.HasProcess {
		return b, nil
	}
	if len(r.Rootfs) > 0 {
		return nil, task.Failf(ttrpc.InvalidArgument, "sandbox %q has a root file system, but no process in its config.json", b.id)
	}
	p := &pod{id: b.id, netns: r.NetNSPath, config: new(wire.PodSandboxConfig), options: b.options, annotations: r.Annotations}
	if r.Options != nil && (r.Options.Is(wire.PodSandboxURL) || r.Options.Is(wire.PodSandboxAlphaURL)) {
		if err := wire.Unmarshal(r.Options.Value, p.config); err != nil {
			return nil, task.Failf(ttrpc.InvalidArgument, "options of type %s: %w", r.Options.TypeURL, err)
		}
	}
	if err := p.check(); err != nil {
		return nil, task.Failf(ttrpc.InvalidArgument, "%w", err)
	}
	if p.netns != "" && p.hasUsers() {
		if b.userns, err = userOwner(p.netns); err != nil {
			return nil, err
		}
		if b.userns != nil {
			// By our pid, since the engine may be another program.
			p.userns = "/proc/" + strconv.Itoa(os.Getpid()) + "/fd/" + strconv.Itoa(int(b.userns.Fd()))
		}
	}
	if err := b.furnish(p); err != nil {
		b.release()
		return nil, err
	}
	return b, nil
}

// release lets go of what only the making of the sandbox needs.
func (b *box) release() {
	if b.userns != nil {
		b.userns.Close()
		b.userns = nil
	}
}

// furnish writes a config.json, and a root file system of one program.
func (b *box) furnish(p *pod) error {
	program, err := pause()
	if err != nil {
		return err
	}
	root := filepath.Join(b.bundle, pauseRoot)
	for _, dir := range []string{"", "proc", "dev"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return fmt.Errorf("make the root file system of sandbox %s: %w", b.id, err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, pauseFile), program, 0o755); err != nil {
		return fmt.Errorf("write the program of sandbox %s: %w", b.id, err)
	}
	if err := os.WriteFile(filepath.Join(b.bundle, "config.json"), spec.Format(p.spec(), ""), 0o600); err != nil {
		return fmt.Errorf("write the config of sandbox %s: %w", b.id, err)
	}
	return nil
}

// make has the engine make the sandbox's container. What it did is undone when
// something fails.
func (b *box) make(ctx context.Context, rootfs []*wire.Mount) (err error) {
	defer b.release()
	// From here on a delete that runs after a crash finds what it needs.
	if err := b.options.Save(b.bundle); err != nil {
		return fmt.Errorf("note the options in the bundle: %w", err)
	}
	root := filepath.Join(b.bundle, "rootfs")
	if len(rootfs) > 0 {
		if err := os.Mkdir(root, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := mounts.Mount(root, rootfs, b.tasks.Reaper); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, mounts.Unmount(root))
		}
	}()
	defer b.tasks.Reaper.Hold()()
	handle, made, err := b.engine.Create(ctx, &engine.Create{
		ID: b.id, Bundle: b.bundle, NoPivotRoot: b.options.NoPivotRoot, NoNewKeyring: b.options.NoNewKeyring,
	})
	if err != nil {
		return err
	}
	b.handle, b.pid = handle, made.Pid
	if _, err := b.tasks.Reaper.Adopt(made.Pid, b.onExit); err != nil {
		return errors.Join(err, handle.Delete(ctx, true))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cgroup, err = b.tasks.Cgroup(made.Pid); err != nil {
		b.tasks.Log("read the cgroup of sandbox " + b.id + ": " + err.Error())
	}
	b.slot = b.tasks.Memory.Slot()
	b.keep()
	return nil
}

func (b *box) start(ctx context.Context) error {
	b.mu.Lock()
	again := !b.started.IsZero()
	b.mu.Unlock()
	if again && ttrpc.Resumed(ctx) {
		return nil
	}
	if again || b.down || b.ended() {
		return task.Failf(ttrpc.FailedPrecondition, "sandbox %q cannot be started a second time", b.id)
	}
	if !ttrpc.Resumed(ctx) || task.AtGate(b.pid) {
		release := b.tasks.Reaper.Hold() // hooks
		err := b.handle.Start(ctx)
		release()
		if err != nil && (!ttrpc.Resumed(ctx) || task.AtGate(b.pid)) {
			return err
		}
	}
	b.mu.Lock()
	b.started = time.Now()
	b.keep()
	b.mu.Unlock()
	return nil
}

// onExit is told by the reaper that the process has ended.
func (b *box) onExit(e reaper.Exit) {
	b.exit = e
	if err := bundle.SaveEnd(b.bundle, bundle.End{Pid: e.Pid, Status: e.Status, At: e.At}); err != nil {
		b.tasks.Log("note the end of sandbox " + b.id + ": " + err.Error())
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.done)
	b.keep()
}

func (b *box) ended() bool {
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// takeDown kills the sandbox's process and removes what the engine holds of it.
// It can be tried again when it fails.
func (b *box) takeDown(ctx context.Context) error {
	if b.down {
		return nil
	}
	b.mu.Lock()
	if b.cgroup != nil {
		b.cgroup.Stats() // for later calls
	}
	b.mu.Unlock()
	release := b.tasks.Reaper.Hold() // hooks
	err := b.handle.Kill(ctx, unix.SIGKILL, true)
	if err == nil || errors.Is(err, engine.ErrNotRunning) || errors.Is(err, engine.ErrNotFound) {
		err = b.handle.Delete(ctx, true)
	}
	release()
	if err != nil {
		return err
	}
	<-b.done
	if err := mounts.Unmount(filepath.Join(b.bundle, "rootfs")); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cgroup != nil {
		b.cgroup.Close()
	}
	b.down = true
	b.keep()
	return nil
}
