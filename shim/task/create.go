package task

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/bundle"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/mounts"
	"github.com/berth-runtime/berth/shim/stdio"
)

func (s *Service) create(ctx context.Context, r *wire.CreateTaskRequest) (wire.Message, error) {
	if r.ID == "" || r.Bundle == "" {
		return nil, Failf(ttrpc.InvalidArgument, "create needs an id and a bundle")
	}
	if c, err := s.find(r.ID); err == nil && ttrpc.Resumed(ctx) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return &wire.CreateTaskResponse{Pid: uint32(c.init.pid)}, nil
	}
	o, err := options.Parse(r.Options)
	if err != nil {
		return nil, Failf(ttrpc.InvalidArgument, "%w", err)
	}
	config, err := bundle.ReadConfig(r.Bundle)
	if err != nil {
		return nil, Failf(ttrpc.InvalidArgument, "%w", err)
	}
	if config.NamesUnit && !o.DriverSaid {
		// Docker tells runc's shim of its driver, and to any other it passes on what daemon.json
		// says; so the name is all that there is. As a path it would be a cgroup beside systemd's
		// own, which is never meant.
		o.SystemdCgroup = true
	}
	eng, err := s.Engine(o)
	if err != nil {
		return nil, Failf(ttrpc.InvalidArgument, "%w", err)
	}
	if ttrpc.Resumed(ctx) {
		if err := s.Undo(ctx, eng, r.ID, r.Bundle); err != nil {
			return nil, err
		}
	}
	c := &container{service: s, id: r.ID, bundle: r.Bundle, options: o, config: config, engine: eng, execs: make(map[string]*process), making: make(chan struct{})}
	c.init = c.newProcess("", stdio.Config{Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr, Terminal: r.Terminal})
	if r.Checkpoint != "" {
		c.restore = &engine.Restore{Image: r.Checkpoint, Parent: r.ParentCheckpoint, Work: o.CriuWorkPath}
	}
	if err := s.reserve(c); err != nil {
		return nil, err
	}
	defer close(c.making)
	if err := c.make(ctx, r); err != nil {
		s.forget(c)
		return nil, err
	}
	pid := c.published(r)
	s.mu.Lock()
	c.made = true
	s.mu.Unlock()
	return &wire.CreateTaskResponse{Pid: pid}, nil
}

// published tells of the container's creation, and of its end if that has come.
func (c *container) published(r *wire.CreateTaskRequest) (pid uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pid = uint32(c.init.pid)
	c.init.state = created
	c.slot = c.service.Memory.Slot()
	c.publish(&wire.TaskCreate{
		ContainerID: r.ID, Bundle: r.Bundle, Rootfs: r.Rootfs, Checkpoint: r.Checkpoint, Pid: pid,
		IO: &wire.TaskIO{Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr, Terminal: r.Terminal},
	})
	c.init.io.Lead()
	c.settle(c.init) // it may have been killed already
	return pid
}

// reserve takes the id, and finds the leader of the container's group.
func (s *Service) reserve(c *container) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, expected := s.expected[c.id]; expected || s.first != "" {
		delete(s.expected, c.id)
		s.first = ""
		s.keep()
	}
	if s.closing {
		return Failf(ttrpc.Unavailable, "the shim is about to leave")
	}
	if s.containers[c.id] != nil {
		return Failf(ttrpc.AlreadyExists, "container %q exists already", c.id)
	}
	s.containers[c.id] = c
	if leader := s.containers[c.config.Group]; leader != nil && leader != c {
		c.leader = leader.bundle
	} else if s.sandbox != "" {
		c.leader = s.sandbox
	}
	return nil
}

func (s *Service) forget(c *container) {
	s.mu.Lock()
	delete(s.containers, c.id)
	s.mu.Unlock()
	c.mu.Lock()
	c.slot.Drop()
	c.slot = nil
	c.mu.Unlock()
	if c.leader != "" {
		bundle.RemoveMember(c.leader, c.id)
	}
	s.leaveIfDone()
}

// make mounts, opens the stdio and has the engine make the container. What it
// did is undone when something fails.
func (c *container) make(ctx context.Context, r *wire.CreateTaskRequest) (err error) {
	// From here on a delete that runs after a crash finds what it needs.
	if err := c.options.Save(c.bundle); err != nil {
		return Failf(ttrpc.Unknown, "note the options in the bundle: %w", err)
	}
	if c.leader != "" {
		if err := bundle.AddMember(c.leader, c.id, c.bundle); err != nil {
			return Failf(ttrpc.Unknown, "note the container in the bundle of its group: %w", err)
		}
	}
	rootfs := filepath.Join(c.bundle, "rootfs")
	if len(r.Rootfs) > 0 {
		if err := os.Mkdir(rootfs, 0o711); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if err := mounts.Mount(rootfs, r.Rootfs, c.service.Reaper); err != nil {
			return err
		}
	}
	defer func() {
		if err != nil && len(r.Rootfs) > 0 {
			err = errors.Join(err, mounts.Unmount(rootfs))
		}
	}()
	c.init.state = starting // hold back its exit
	if c.init.io, err = c.openIO(ctx, c.init.config); err != nil {
		return err
	}
	if c.restore != nil {
		return nil
	}
	if err := c.makeInit(context.WithoutCancel(ctx)); err != nil {
		c.init.io.Close()
		return err
	}
	return nil
}

func (c *container) openIO(ctx context.Context, config stdio.Config) (*stdio.IO, error) {
	io, err := stdio.Open(ctx, config, c.service.Reaper, c.service.Log)
	if err != nil {
		return nil, Failf(ttrpc.InvalidArgument, "%w", err)
	}
	return io, nil
}

// makeInit has the engine make, or restore, the container.
func (c *container) makeInit(ctx context.Context) error {
	defer c.service.Reaper.Hold()()
	spec := &engine.Create{
		ID: c.id, Bundle: c.bundle, Stdio: c.init.io.Child(),
		NoPivotRoot: c.options.NoPivotRoot, NoNewKeyring: c.options.NoNewKeyring,
	}
	var handle engine.Container
	var made *engine.Process
	var err error
	if c.restore != nil {
		handle, made, err = c.engine.Restore(ctx, spec, c.restore)
	} else {
		handle, made, err = c.engine.Create(ctx, spec)
	}
	if err != nil {
		return err
	}
	if err := c.init.adopt(made); err != nil {
		return errors.Join(err, handle.Delete(ctx, true))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handle = handle
	c.watch(made.Pid)
	return nil
}

// watch opens the container's cgroup and reports OOM kills. That
// there is nothing to be opened or watched is not worth failing for.
func (c *container) watch(pid int) {
	group, err := c.service.Cgroup(pid)
	if err != nil {
		c.service.Log("read the cgroup of " + c.id + ": " + err.Error())
		return
	}
	c.cgroup = group
	c.watchOOM(group)
}

func (c *container) watchOOM(group engine.Cgroup) {
	var err error
	c.stopOOM, err = group.WatchOOM(func(kills uint64) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.init.state != stopped {
			c.oomRisen(kills)
			group.Stats() // as long as there is a cgroup to read
		}
	})
	if err != nil {
		c.service.Log("watch " + c.id + " for OOM kills: " + err.Error())
	}
}

// leaveCgroup ends what watch has begun. The container's lock must be held.
func (c *container) leaveCgroup() {
	if c.stopOOM != nil {
		c.stopOOM()
		c.stopOOM = nil
	}
	if c.cgroup != nil {
		c.cgroup.Close()
	}
}
