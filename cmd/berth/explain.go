package main

import (
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/view"
)

func (p *program) explainCommand() *cli.Command {
	var asJSON, whole bool
	id, systemdVersion := "ID", 0
	c := &cli.Command{
		Args: "BUNDLE", Least: 1, Most: 1,
		Summary: "Show what run would do for a bundle.",
		Help: "Needs no root and changes nothing. Each line ends with the config.json entry that\n" +
			"causes it. In JSON it is always the whole.",
		Examples: []string{
			"berth explain .                          # in about thirty lines",
			"berth explain --program . | grep mounts/3 # the system calls for an entry of config.json",
		},
		Run: func(args []string) error {
			bundle, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			r, err := p.runtime()
			if err != nil {
				return err
			}
			f, err := r.Foresee(id, &container.CreateOptions{
				Bundle: bundle, IO: container.IO{Stdio: [3]uintptr{0, 1, 2}}, NotifySocket: os.Getenv("NOTIFY_SOCKET"), Attached: true,
			}, systemdVersion)
			if err != nil {
				return err
			}
			text := view.Brief(f)
			if whole || asJSON {
				text = view.Explain(f, asJSON)
			}
			_, err = os.Stdout.Write(text)
			return err
		},
	}
	c.Flags.Int(&systemdVersion, "systemd-version", "", "N", "with --systemd-cgroup, assume this systemd version instead of asking systemd")
	c.Flags.Bool(&whole, "program", "", "show each step, and each system call of the container's first process")
	c.Flags.Bool(&asJSON, "json", "", "as JSON")
	c.Flags.String(&id, "id", "", "ID", "the container's id")
	return c
}
