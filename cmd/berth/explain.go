package main

import (
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/view"
)

func (p *program) explainCommand() *cli.Command {
	var asJSON bool
	id, systemdVersion := "ID", 0
	c := &cli.Command{
		Args: "BUNDLE", Least: 1, Most: 1,
		Summary: "Show what run would do for a bundle: the plan and the list of system calls.",
		Help: "Needs no root and changes nothing. Each line ends with the config.json entry that\n" +
			"causes it.",
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
			_, err = os.Stdout.Write(view.Explain(f, asJSON))
			return err
		},
	}
	c.Flags.Int(&systemdVersion, "systemd-version", "", "N", "with --systemd-cgroup, assume this systemd version instead of asking systemd")
	c.Flags.Bool(&asJSON, "json", "", "as JSON")
	c.Flags.String(&id, "id", "", "ID", "the container's id")
	return c
}
