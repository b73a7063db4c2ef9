package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

func (s *Service) checkpoint(ctx context.Context, r *wire.CheckpointTaskRequest) (wire.Message, error) {
	c, err := s.find(r.ID)
	if err != nil {
		return nil, err
	}
	var o wire.CheckpointOptions
	if r.Options != nil {
		if len(r.Options.Value) > 0 && !r.Options.Is(wire.CheckpointURL) {
			return nil, Failf(ttrpc.InvalidArgument, "checkpoint options of type %q are not understood: use %s", r.Options.TypeURL, wire.CheckpointURL)
		}
		if err := wire.Unmarshal(r.Options.Value, &o); err != nil {
			return nil, Failf(ttrpc.InvalidArgument, "checkpoint options: %w", err)
		}
	}
	c.change.Lock()
	defer c.change.Unlock()
	c.mu.Lock()
	at, ended, now := c.init.state, c.init.ended, c.init.status()
	c.checkpointing = at == running && !ended
	c.mu.Unlock()
	if at != running || ended {
		return nil, Failf(ttrpc.FailedPrecondition, "container %q is %s and cannot be checkpointed", c.id, now)
	}
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.checkpointing = false
		c.settle(c.init)
	}()
	work := o.WorkPath
	if work == "" {
		work = c.options.CriuWorkPath
	}
	if work == "" {
		if work, err = os.MkdirTemp(c.bundle, "criu-work-"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(work)
	}
	spec := &engine.Checkpoint{
		Image: r.Path, Work: work, Parent: o.ParentPath, LeaveRunning: !o.Exit, OpenTCP: o.OpenTCP,
		ExternalUnixSockets: o.ExternalUnixSockets, Terminal: o.Terminal || c.init.config.Terminal, FileLocks: o.FileLocks,
		EmptyNamespaces: o.EmptyNamespaces, CgroupsMode: o.CgroupsMode,
	}
	release := s.Reaper.Hold() // criu is the engine's to wait for
	err = c.handle.Checkpoint(context.WithoutCancel(ctx), spec)
	release()
	if err != nil {
		kept := filepath.Join(c.bundle, "criu-dump.log")
		if copyErr := copyFile(kept, filepath.Join(work, "dump.log")); copyErr == nil {
			return nil, fmt.Errorf("checkpoint container %q: %w (criu's log is in %s)", c.id, err, kept)
		} else if !errors.Is(copyErr, os.ErrNotExist) {
			s.Log("keep criu's log: " + copyErr.Error())
		}
		return nil, fmt.Errorf("checkpoint container %q: %w", c.id, err)
	}
	s.Publish(&wire.TaskCheckpointed{ContainerID: c.id, Checkpoint: r.Path})
	return &wire.Empty{}, nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
