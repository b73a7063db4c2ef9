package linked

import (
	"context"
	"errors"
	"fmt"

	"github.com/berth-runtime/berth/shim/engine"
)

// unsupported names what this engine cannot do, and who can.
func unsupported(what string) error {
	return fmt.Errorf("%s: %w by the linked engine; name a runtime that can by the option BinaryName", what, errors.ErrUnsupported)
}

// Restore is not what this engine can do.
func (e *Engine) Restore(context.Context, *engine.Create, *engine.Restore) (engine.Container, *engine.Process, error) {
	return nil, nil, unsupported("restore a container")
}

// Checkpoint is not what this engine can do.
func (h *handle) Checkpoint(context.Context, *engine.Checkpoint) error {
	return unsupported("checkpoint a container")
}
