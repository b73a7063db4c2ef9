package main

import (
	"errors"

	"github.com/berth-runtime/berth/container"
	"github.com/berth-runtime/berth/internal/cli"
)

func (p *program) restoreCommand() *cli.Command {
	var o makeOptions
	var criu container.CriuOptions
	var detach, keep, noSubreaper bool
	c := &cli.Command{
		Name: "restore", Args: "ID", Least: 1, Most: 1,
		Summary: "Bring a container back from a checkpoint, and stay with it until it ends.",
		Help: "The bundle is the one that the container was made from. The exit status is the program's,\n" +
			"128+N where signal N killed it.",
		Examples: []string{"berth restore -d -b /srv/demo --image-path /srv/demo.ckpt demo"},
		Run: func(args []string) error {
			return p.restore(args[0], &o, &criu, detach, keep)
		},
	}
	o.define(&c.Flags)
	p.defineCriu(&c.Flags, &criu)
	c.Flags.Bool(&detach, "detach", "d", "return once the processes run")
	c.Flags.Bool(&keep, "keep", "", "keep the container's state when it has ended")
	c.Flags.Bool(&noSubreaper, "no-subreaper", "", "accepted for callers of old; berth never is a subreaper").Hidden = true
	return c
}

func (p *program) restore(id string, o *makeOptions, criu *container.CriuOptions, detach, keep bool) error {
	var front *foreground
	if !detach {
		var err error
		if front, err = newForeground(); err != nil {
			return err
		}
		defer front.close()
	}
	r, err := p.runtime()
	if err != nil {
		return err
	}
	options, err := o.options()
	if err != nil {
		return err
	}
	if err := p.criuPaths(criu); err != nil {
		return err
	}
	if front != nil && o.consoleSocket == "" {
		options.Console = front.console
	}
	created, err := r.Restore(id, &container.RestoreOptions{CreateOptions: *options, CriuOptions: *criu})
	if err != nil {
		return &exitStatus{code: 1, err: err}
	}
	defer created.Close()
	if detach {
		return nil
	}
	status, err := front.wait(created.Process())
	front.close()
	if !keep {
		err = errors.Join(err, created.Delete(true))
	}
	if err != nil {
		return err
	}
	if code := exitCode(status); code != 0 {
		return &exitStatus{code: code}
	}
	return nil
}
