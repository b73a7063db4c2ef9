package main

import (
	"os"

	"github.com/berth-runtime/berth/cmd/berth/internal/doctor"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/internal/kernel"
)

func (p *program) doctorCommand() *cli.Command {
	var asJSON, asMarkdown bool
	c := &cli.Command{
		Summary: "Check whether this machine can run containers, and show how to fix each gap.",
		Help: "As root it checks what root needs, otherwise what an ordinary user needs; gaps that only matter\n" +
			"to the other are hints. The exit status is 0 if nothing is missing.",
		Run: func([]string) error {
			if asMarkdown {
				_, err := os.Stdout.Write(kernel.Page())
				return err
			}
			m := doctor.Here()
			findings := m.Examine()
			text := doctor.JSON(findings, m.Kind())
			if !asJSON {
				// NO_COLOR: see no-color.org.
				text = doctor.Text(findings, m.Kind(), terminal.IsTerminal(1) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
			}
			if _, err := os.Stdout.Write(text); err != nil {
				return err
			}
			if !doctor.Healthy(findings, m.Kind()) {
				return &exitStatus{code: 1}
			}
			return nil
		},
	}
	c.Flags.Bool(&asJSON, "json", "", "as JSON")
	c.Flags.Bool(&asMarkdown, "markdown", "", "print docs/kernel-features.md instead: what newer kernels add")
	return c
}
