package enforce

import (
	"fmt"
	"os"

	"github.com/berth-runtime/berth/node/enforce/record"
	"github.com/berth-runtime/berth/node/plan"
)

func (e *Engine) setParameter(s plan.Step) error {
	if err := e.intend(s, nil); err != nil {
		return err
	}
	return e.write(e.Machine.ParameterFile(s.Target), s.Value)
}

func (e *Engine) revertParameter(c *record.Change) error {
	return e.write(e.Machine.ParameterFile(c.Target), c.Before)
}

func (e *Engine) setScore(s plan.Step) error {
	d := s.Process
	if err := e.intend(s, func(c *record.Change) { c.PID, c.Start = d.PID, d.Start }); err != nil {
		return err
	}
	if !e.Machine.Alive(d.PID, d.Start) {
		return nil // it has ended; its successor is found at the next look
	}
	return e.write(e.Machine.ScoreFile(d.PID), s.Value)
}

func (e *Engine) revertScore(c *record.Change) error {
	if !e.Machine.Alive(c.PID, c.Start) {
		return nil
	}
	return e.write(e.Machine.ScoreFile(c.PID), c.Before)
}

// write gives a file of /proc a value, in one call and without making it.
func (e *Engine) write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0) // as shells do; the kernel does not mind
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(value); err != nil {
		return fmt.Errorf("%w (value %s)", err, value)
	}
	return nil
}
