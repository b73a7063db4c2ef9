package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/internal/json"
)

func (p *program) gcCommand() *cli.Command {
	var dry, asJSON bool
	c := &cli.Command{
		Summary: "Clean up after killed commands.",
		Help: "Removes half-created containers whose creating command is gone, with their cgroups, half-deleted\n" +
			"ones, and stale files. Complete containers are left alone, even if they have stopped.",
		Run: func([]string) error {
			r, err := p.runtime()
			if err != nil {
				return err
			}
			var list leftovers
			tell := list.add
			if !asJSON {
				tell = printLeftover(dry)
			}
			err = p.collect(r, dry, tell)
			if asJSON {
				err = errors.Join(err, list.print())
			}
			return err
		},
	}
	jsonFlag(&c.Flags, &asJSON)
	c.Flags.Bool(&dry, "dry-run", "n", "only show what would be removed")
	return c
}

// printLeftover tells of each in a line.
func printLeftover(dry bool) func(*container.Leftover) {
	verb := "removing"
	if dry {
		verb = "would remove"
	}
	return func(l *container.Leftover) {
		fmt.Printf("%s: %s: %s %s\n", l.ID, l.Why, verb, strings.Join(l.What, ", "))
	}
}

// leftovers is what was found, to be written as one JSON document.
type leftovers struct{ json.Writer }

func (l *leftovers) add(found *container.Leftover) {
	if len(l.Bytes()) == 0 {
		l.Array()
	}
	l.Object()
	l.Key("id").String(found.ID)
	l.Key("why").String(found.Why)
	l.Key("what").Strings(found.What)
	l.End()
}

func (l *leftovers) print() error {
	if len(l.Bytes()) == 0 {
		l.Array()
	}
	l.End()
	_, err := os.Stdout.Write(append(l.Bytes(), '\n'))
	return err
}

// collect shows on a terminal what it is at: a container that is ended may take its
// time.
func (p *program) collect(r *container.Runtime, dry bool, tell func(*container.Leftover)) error {
	var id atomic.Pointer[string]
	progress := terminal.Show(func() string {
		if id := id.Load(); id != nil {
			return "gc: removing what is left of " + *id
		}
		return "gc: looking at the containers"
	})
	defer progress.End()
	return r.CollectGarbage(dry, func(l *container.Leftover) {
		id.Store(&l.ID)
		progress.Clear()
		tell(l)
	})
}
