package container

import (
	"errors"

	"github.com/berth-runtime/berth/engine/launch"
)

// Go lets the first process of an attached container execute the user's program.
// The poststart hooks have run when it returns.
func (c *Created) Go() error {
	defer c.runtime.Trace.Begin("let it execute its program").End()
	if err := c.child.Answer(); err != nil {
		return err
	}
	err := c.child.Serve(0, c.maker.serve)
	if !errors.Is(err, launch.ErrExecuted) {
		return err
	}
	if signal, early := c.child.EndedEarly(); early {
		return killedEarly(c.ID, signal)
	}
	c.child.Close() // it has nothing to say any more
	c.Release()
	return c.poststart(&c.maker.plan.Hooks)
}

// Process returns the first process of an attached container, to wait for.
func (c *Created) Process() *launch.Child { return c.child }

// Abandon undoes an attached container that could not be started.
func (c *Created) Abandon() { c.maker.fail() }
