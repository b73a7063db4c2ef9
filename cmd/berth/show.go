package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/internal/json"
)

func (p *program) stateCommand() *cli.Command {
	return p.simple("Show the state of a container as JSON.", func(c *container.Container) error {
		w := json.NewWriter(make([]byte, 0, 1024), "  ")
		s := c.State()
		s.JSON(w)
		_, err := os.Stdout.Write(append(w.Bytes(), '\n'))
		return err
	})
}

func (p *program) listCommand() *cli.Command {
	var quiet bool
	format, asJSON := "table", false
	c := &cli.Command{
		Summary: "List the containers in the state directory.",
		Run: func([]string) error {
			if format != "table" && format != "json" {
				return fmt.Errorf("--format %q: it is table or json", format)
			}
			r, err := p.runtime()
			if err != nil {
				return err
			}
			ids, err := r.List()
			if err != nil {
				return err
			}
			if len(ids) == 0 && p.rootGiven && p.root != defaultRoot() {
				// The usual one is made by the first container. Another that is missing is a
				// slip of the pen, and not a place without containers.
				if _, err := os.Stat(r.Root); err != nil {
					return fmt.Errorf("--root: %w", err)
				}
			}
			if quiet {
				out := bufio.NewWriter(os.Stdout)
				for _, id := range ids {
					fmt.Fprintln(out, id)
				}
				return out.Flush()
			}
			states, err := p.states(r, ids)
			if err != nil {
				return err
			}
			if format == "json" || asJSON {
				return printStates(states)
			}
			return tableOf(states)
		},
	}
	c.Flags.Bool(&quiet, "quiet", "q", "show the ids only")
	c.Flags.String(&format, "format", "f", "table|json", "form of the list")
	jsonFlag(&c.Flags, &asJSON)
	return c
}

// states looks at each container. One that is removed or still being made in
// between is none of the caller's.
func (p *program) states(r *container.Runtime, ids []string) ([]container.State, error) {
	states := make([]container.State, 0, len(ids))
	err := r.Each(ids, func(_ string, c *container.Container, err error) {
		switch {
		case err == nil:
			states = append(states, c.State())
		case !errors.Is(err, container.ErrNotExist):
			p.log.Warn(err.Error())
		}
	})
	return states, err
}

func printStates(states []container.State) error {
	w := json.NewWriter(nil, "")
	w.Array()
	for i := range states {
		states[i].JSON(w)
	}
	w.End()
	_, err := os.Stdout.Write(append(w.Bytes(), '\n'))
	return err
}

// tableOf writes the columns that clients of OCI runtimes know. For people what is
// long comes last, where a narrow terminal cuts it.
func tableOf(states []container.State) error {
	if terminal.IsTerminal(1) {
		t := tabwriter.NewWriter(terminal.Lines(os.Stdout), 12, 1, 3, ' ', 0)
		fmt.Fprint(t, "ID\tPID\tSTATUS\tOWNER\tCREATED\tBUNDLE\n")
		for _, s := range states {
			fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", s.ID, s.Pid, s.Status, escape.Line(s.OwnerName()), s.Created.Local().Format(time.DateTime), escape.Line(s.Bundle))
		}
		return t.Flush()
	}
	out := bufio.NewWriter(os.Stdout)
	t := tabwriter.NewWriter(out, 12, 1, 3, ' ', 0)
	fmt.Fprint(t, "ID\tPID\tSTATUS\tBUNDLE\tCREATED\tOWNER\n")
	for _, s := range states {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\n", s.ID, s.Pid, s.Status, escape.Line(s.Bundle), s.Created.Format(time.RFC3339Nano), escape.Line(s.OwnerName()))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return out.Flush()
}
