package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/berth-runtime/berth/container"
	"github.com/berth-runtime/berth/internal/cli"
)

func (p *program) eventsCommand() *cli.Command {
	var once bool
	interval := 5 * time.Second
	c := &cli.Command{
		Name: "events", Args: "ID", Least: 1, Most: 1,
		Summary: "Tell as JSON lines when a container runs out of memory, and how its counters stand.",
		Help:    "It ends when the container's first process has ended.",
		Run: func(args []string) error {
			c, err := p.load(args[0])
			if err != nil {
				return err
			}
			defer c.Close()
			print := func(e *container.Event) error {
				_, err := os.Stdout.Write(e.JSON())
				return err
			}
			if once {
				stats, err := c.Stats()
				if err != nil {
					return err
				}
				return print(&container.Event{ID: c.ID, Stats: stats})
			}
			debug.SetGCPercent(100)
			return c.Events(interval, print)
		},
	}
	c.Flags.Bool(&once, "stats", "", "tell the counters once and return")
	c.Flags.Func("interval", "", "TIME", "time between the counters, as 5s (the default)", func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is no length of time such as 1s or 500ms", text)
		}
		interval = d
		return nil
	})
	return c
}
