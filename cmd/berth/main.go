// Berth runs OCI containers. See berth --help.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/berth-runtime/berth/internal/cli"
)

// Commands are short: collecting garbage takes longer than what it would free.
// The foreground of run and exec turns it on again, since it may last.
func init() { debug.SetGCPercent(-1) }

func main() { os.Exit(run()) }

func run() int {
	p := newProgram()
	root := p.command()
	err := root.Execute(filepath.Base(os.Args[0]), os.Args[1:], os.Stdout)
	var status *exitStatus
	var usage *cli.UsageError
	var unknown *cli.UnknownCommand
	switch {
	case err == nil, errors.Is(err, cli.ErrHelp):
		return 0
	case errors.As(err, &status):
		if status.err != nil {
			p.log.Error(oneLine(status.err.Error()))
		}
		return status.code
	case errors.As(err, &unknown):
		fmt.Fprintln(os.Stderr, err)
		return 3 // what runc answers; clients probe for commands
	case errors.As(err, &usage):
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	p.log.Error(oneLine(err.Error()))
	return 1
}

// exitStatus ends the program with a status of its own.
type exitStatus struct {
	code int
	err  error
}

func (e *exitStatus) Error() string {
	if e.err != nil {
		return e.err.Error()
	}
	return fmt.Sprintf("exit status %d", e.code)
}

// oneLine keeps a message on its line, whatever names are in it.
func oneLine(s string) string {
	clean := make([]rune, 0, len(s))
	for _, r := range s {
		switch {
		case r == '\n':
			clean = append(clean, '\\', 'n')
		case r < ' ' || r == 0x7f:
			clean = append(clean, '?')
		default:
			clean = append(clean, r)
		}
	}
	return string(clean)
}
