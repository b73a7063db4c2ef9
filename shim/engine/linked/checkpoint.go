package linked

import (
	"context"

	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/shim/engine"
)

// Restore makes a container of a checkpoint.
func (e *Engine) Restore(_ context.Context, s *engine.Create, from *engine.Restore) (engine.Container, *engine.Process, error) {
	return e.bring(s, func(o container.CreateOptions) (*container.Created, error) {
		return e.runtime.Restore(s.ID, &container.RestoreOptions{
			CreateOptions: o,
			CriuOptions: container.CriuOptions{
				Images: from.Image, Work: from.Work,
				// A client says what may be in a checkpoint when that is made, and has no way
				// to say it again; criu wants it said twice.
				ExternalSockets: true, FileLocks: true,
			},
		})
	})
}

// Checkpoint writes the container down. Unless it is left running, nothing of it
// is left when this returns.
func (h *handle) Checkpoint(_ context.Context, s *engine.Checkpoint) error {
	return h.with(func(c *container.Container) error {
		return c.Checkpoint(&container.CheckpointOptions{
			CriuOptions: container.CriuOptions{
				Images: s.Image, Work: s.Work,
				TCPEstablished: s.OpenTCP, ExternalSockets: s.ExternalUnixSockets, ShellJob: s.Terminal, FileLocks: s.FileLocks,
				EmptyNamespaces: s.EmptyNamespaces, CgroupMode: s.CgroupsMode,
			},
			LeaveRunning: s.LeaveRunning, Parent: s.Parent, StatusFD: -1,
		})
	})
}
