package main

import (
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/container"
	"github.com/berth-runtime/berth/internal/cli"
)

func (p *program) explainCommand() *cli.Command {
	var asJSON bool
	o := container.ExplainOptions{ID: "ID"}
	c := &cli.Command{
		Args: "BUNDLE", Least: 1, Most: 1,
		Summary: "Show what run would do for a bundle: the plan, and the program of system calls.",
		Help:    "Needs no root and touches nothing. Each line ends with the entry of config.json that\ncauses it.",
		Run: func(args []string) error {
			bundle, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			o.Systemd = p.systemdCgroup || p.cgroupManager == "systemd"
			text, err := container.Explain(bundle, &o, asJSON)
			if err != nil {
				return err
			}
			_, err = os.Stdout.Write(text)
			return err
		},
	}
	c.Flags.Int(&o.SystemdVersion, "systemd-version", "", "N", "with --systemd-cgroup, what to take systemd for instead of asking it")
	c.Flags.Bool(&asJSON, "json", "", "as JSON")
	c.Flags.String(&o.ID, "id", "", "ID", "the container's id")
	return c
}
