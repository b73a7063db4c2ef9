package main

import (
	"fmt"
	"strings"

	"github.com/berth-runtime/berth/container"
	"github.com/berth-runtime/berth/internal/cli"
)

func (p *program) gcCommand() *cli.Command {
	var dry bool
	c := &cli.Command{
		Name: "gc", Summary: "Remove what killed commands have left of containers.",
		Help: "Half-made containers whose maker is gone, with their cgroups, half-deleted ones, and\n" +
			"stale files. Containers that were made are left alone, also when they have stopped.",
		Run: func([]string) error {
			r, err := p.runtime()
			if err != nil {
				return err
			}
			verb := "removing"
			if dry {
				verb = "would remove"
			}
			return r.CollectGarbage(dry, func(l *container.Leftover) {
				fmt.Printf("%s: %s: %s %s\n", l.ID, l.Why, verb, strings.Join(l.What, ", "))
			})
		},
	}
	c.Flags.Bool(&dry, "dry-run", "n", "only tell what would be removed")
	return c
}
