package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/view"
	"github.com/berth-runtime/berth/internal/escape"
)

func (p *program) eventsCommand() *cli.Command {
	var once bool
	// Clients read the lines from a pipe.
	asJSON := !terminal.IsTerminal(1)
	interval := 5 * time.Second
	c := &cli.Command{
		Args: "ID", Least: 1, Most: 1,
		Summary: "Report OOM events, usage counters and refused system calls of a container.",
		Help: "Events are JSON lines, or readable lines on a terminal. Refused system calls are told of where run or exec\n" +
			"has --explain-denials. It ends when the container's first process has ended.",
		Run: func(args []string) error {
			c, err := p.load(args[0])
			if err != nil {
				return err
			}
			defer c.Close()
			print := func(e *view.Event) error {
				text := e.JSON()
				if !asJSON {
					text = eventText(e, time.Now())
				}
				_, err := os.Stdout.Write(text)
				return err
			}
			if once {
				stats, err := view.StatsOf(c)
				if err != nil {
					return err
				}
				return print(&view.Event{ID: c.ID, Stats: stats})
			}
			debug.SetGCPercent(100)
			return view.Events(c, interval, print)
		},
	}
	c.Flags.Bool(&asJSON, "json", "", "JSON even on a terminal; --json=false is readable text even in a pipe")
	c.Flags.Bool(&once, "stats", "", "print the counters once and return")
	c.Flags.Func("interval", "", "TIME", "time between samples, such as 5s (the default)", func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is not a length of time such as 1s or 500ms", text)
		}
		interval = d
		return nil
	})
	return c
}

// eventText is an event in a line for people.
func eventText(e *view.Event, at time.Time) []byte {
	line := at.Format("15:04:05") + "  " + e.ID + "  "
	if e.Denied != nil {
		return []byte(line + "denied: " + escape.Line(e.Denied.String()) + "\n")
	}
	if e.Stats == nil {
		return []byte(line + "out of memory\n")
	}
	add := func(name, text string) { line += name + " " + text + "  " }
	if c := e.Stats.CPU; c != nil && c.Usage != nil {
		add("cpu", time.Duration(*c.Usage).Round(time.Millisecond).String())
		if c.Throttled != nil && *c.Throttled > 0 {
			add("throttled", time.Duration(*c.Throttled).Round(time.Millisecond).String())
		}
	}
	if m := e.Stats.Memory; m != nil && m.Usage != nil {
		text := cgrouptool.Size(*m.Usage)
		if m.Limit != nil && *m.Limit != cgroup.NoLimit {
			text += " of " + cgrouptool.Size(*m.Limit)
		}
		add("memory", text)
	}
	if t := e.Stats.Pids; t != nil && t.Usage != nil {
		text := strconv.FormatUint(*t.Usage, 10)
		if t.Limit != nil && *t.Limit != cgroup.NoLimit {
			text += " of " + strconv.FormatUint(*t.Limit, 10)
		}
		add("tasks", text)
	}
	for _, n := range e.Stats.Interfaces {
		add(escape.Line(n.Name), cgrouptool.Size(n.RxBytes)+" in, "+cgrouptool.Size(n.TxBytes)+" out")
	}
	return []byte(strings.TrimRight(line, " ") + "\n")
}
