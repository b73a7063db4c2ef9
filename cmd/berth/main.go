package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/supervisor"
	"github.com/berth-runtime/berth/internal/escape"
	_ "github.com/berth-runtime/berth/internal/start/stack" // first of all
	"golang.org/x/sys/unix"
)

// Commands are short: collecting garbage takes longer than what it would free.
// The foreground of run and exec turns it on again, since it may last.
func init() { debug.SetGCPercent(-1) }

func main() { os.Exit(run()) }

func run() int {
	if os.Args[0] == container.SupervisorName {
		return supervisor.Process(os.Args[1:])
	}
	keepDescriptors()
	p := newProgram()
	root := p.command()
	err := root.Execute(filepath.Base(os.Args[0]), os.Args[1:], os.Stdout)
	if p.inChroot != nil {
		if failed := p.inChroot.again(); p.debug {
			p.log.Debug("have the directory of the chroot as the root of a mount namespace: " + failed.Error())
		}
	}
	if written := p.trace.Write(p.traceFile); err == nil {
		err = written
	} else if written != nil {
		p.log.Warn(escape.Message(written.Error()))
	}
	var status *exitStatus
	var usage *cli.UsageError
	switch {
	case err == nil, errors.Is(err, cli.ErrHelp):
		return 0
	case errors.As(err, &status):
		switch {
		case status.err != nil && status.plain:
			fmt.Fprintln(os.Stderr, escape.Message(status.err.Error()))
		case status.err != nil:
			p.log.Error(escape.Message(status.err.Error()))
		}
		return status.code
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, err)
		var unknown *cli.UnknownCommand
		if errors.As(err, &unknown) && usage.Command == filepath.Base(os.Args[0]) {
			return unknownCommand
		}
		return usage.Status
	}
	p.log.Error(escape.Message(err.Error()))
	return p.failing
}

// unknownCommand is the exit status by which runc's callers tell that it has no such command.
const unknownCommand = 3

// attended is a command that passes on the exit status of another program: a failure of our own
// has one by which it can be told from that, as with env(1) and timeout(1).
func (p *program) attended(c *cli.Command) *cli.Command {
	run := c.Run
	c.UsageStatus = noBox
	c.Run = func(args []string) error {
		p.failing = noBox
		return run(args)
	}
	return c
}

// keepDescriptors lets no descriptor of our caller pass to a hook or a helper
// program by accident; what a container is to have is handed over by name.
func keepDescriptors() {
	const first = 3
	if unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	// Linux before 5.11 has no such flag.
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
}

// exitStatus ends the program with a status of its own.
type exitStatus struct {
	code int
	err  error
	// plain errors are for a person, not for a client that reads our log.
	plain bool
}

func (e *exitStatus) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return fmt.Sprintf("exit status %d", e.code)
}
