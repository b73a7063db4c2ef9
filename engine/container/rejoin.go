package container

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// Rejoin goes on with an Exec that was cut off by the end of the process that made it, after Held.
// Our caller has that one's descriptors, and waits for its children. It returns when the program
// has been executed, and its error says that it has not.
func (c *Container) Rejoin(o *ExecOptions, h launch.Held) error {
	e, err := c.execer(o)
	if err != nil {
		return err
	}
	// What may still come after the last fork (compile.Exec).
	var may []program.Expectation
	for i := range e.process.Rlimits {
		may = append(may, program.Expectation{Request: program.Request{Kind: program.AskLimits, Value: uint64(i)}})
	}
	may = append(may, program.Expectation{Request: program.Request{Kind: program.AskScheduling}},
		program.Expectation{Request: program.Request{Kind: program.AskListener}, FD: true})
	e.child = launch.Rejoin(h, program.NewTalk(may...), func(f program.Failure) error {
		note := program.Note{Pointer: "/process/args/0", Text: "exec: " + strconv.Quote(o.Process.Args[0])}
		if f.Nr == unix.SYS_SECCOMP {
			note = c.noteOf(f)
		}
		return launch.ExplainCall(f, note, h.Pid)
	})
	defer e.child.Close()
	if err := e.child.Answer(); err != nil {
		return err
	}
	if err := e.child.Serve(0, e.serve); !errors.Is(err, launch.ErrExecuted) {
		return ofProcess(err)
	}
	if _, early := e.child.EndedEarly(); early {
		return fmt.Errorf("container %s: the process has ended before it could execute its program, and what it has said of that is lost", c.ID)
	}
	return nil
}
