package main

import (
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/container"
)

func (p *program) restoreCommand() *cli.Command {
	var o makeOptions
	var criu container.CriuOptions
	var detach, keep, noSubreaper bool
	c := &cli.Command{
		Args: "ID", Least: 1, Most: 1,
		Summary: "Restore a container from a checkpoint, and wait for it to end.",
		Help: "Use the bundle that the container was created from. The exit status is the program's,\n" +
			"or 128+N if signal N killed it.",
		Examples: []string{"berth restore -d -b /srv/demo --image-path /srv/demo.ckpt demo"},
		Run: func(args []string) error {
			return p.restore(args[0], &o, &criu, detach, keep)
		},
	}
	o.define(&c.Flags)
	p.defineCriu(&c.Flags, &criu)
	c.Flags.Bool(&detach, "detach", "d", "detach: return once the processes run")
	c.Flags.Bool(&keep, "keep", "", "keep the container's state after it has ended")
	c.Flags.Bool(&noSubreaper, "no-subreaper", "", "accepted for compatibility; berth is never a subreaper").Hidden = true
	return c
}

func (p *program) restore(id string, o *makeOptions, criu *container.CriuOptions, detach, keep bool) error {
	if err := p.criuPaths(criu); err != nil {
		return err
	}
	return p.attend(o, detach, keep, func(r *container.Runtime, options *container.CreateOptions) (*container.Created, error) {
		progress := terminal.Show(func() string { return "restoring " + id + " with criu" })
		defer progress.End()
		return r.Restore(id, &container.RestoreOptions{CreateOptions: *options, CriuOptions: *criu})
	}, func() error { return nil })
}
