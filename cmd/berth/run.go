package main

import (
	"errors"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/supervisor"
	"golang.org/x/sys/unix"
)

func (p *program) runCommand() *cli.Command {
	var o makeOptions
	var detach, keep, explain, noSubreaper bool
	c := &cli.Command{
		Args: "ID", Least: 1, Most: 1,
		Summary: "Create a container, start it, and wait for it to end.",
		Help: "The exit status is the program's, or 128+N if signal N killed it. The container is\n" +
			"removed when it ends.",
		Examples: []string{"berth run -b /srv/demo demo", "berth run -d --pid-file /run/demo.pid demo"},
		Run: func(args []string) error {
			if explain && detach {
				return errors.New("--explain-denials is for the foreground: berth has to stay with the container")
			}
			return p.run(args[0], &o, detach, keep, explain)
		},
	}
	o.define(&c.Flags)
	c.Flags.Absent = p.inBundle
	c.Flags.Bool(&detach, "detach", "d", "detach: return once the program runs")
	c.Flags.Bool(&keep, "keep", "", "keep the container's state after it has ended")
	explainFlag(&c.Flags, &explain)
	c.Flags.Bool(&noSubreaper, "no-subreaper", "", "accepted for callers of old; berth never is a subreaper").Hidden = true
	return c
}

func (p *program) run(id string, o *makeOptions, detach, keep, explain bool) error {
	var notifier *container.Notifier
	var denials *supervisor.Denials
	defer func() { p.warnDenials(denials) }()
	return p.attend(o, detach, keep, func(r *container.Runtime, options *container.CreateOptions) (*container.Created, error) {
		options.Attached = true
		if explain {
			denials = explainDenials(&options.IO)
		}
		created, err := r.Create(id, options)
		if err != nil {
			p.noteChroot(err, options.Preserve)
			return nil, err
		}
		if notifier, err = created.Notifier(options.NotifySocket); err == nil {
			err = created.Go()
		}
		if err != nil {
			created.Abandon()
			created.Close()
			return nil, err
		}
		return created, nil
	}, func() error {
		if detach {
			return passReady(notifier)
		}
		if notifier != nil {
			go func() {
				if err := notifier.Pass(false); err != nil {
					p.log.Warn(err.Error())
				}
			}()
		}
		return nil
	})
}

// attend makes a container whose processes run then, and stays with it until it
// ends, unless it is to be left in the background.
func (p *program) attend(o *makeOptions, detach, keep bool,
	bring func(*container.Runtime, *container.CreateOptions) (*container.Created, error), running func() error) error {
	var front *foreground
	if !detach {
		var err error
		if front, err = p.newForeground(); err != nil {
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
	if front != nil && o.consoleSocket == "" {
		options.Console = front.console
	}
	created, err := bring(r, options)
	if err != nil {
		return &exitStatus{code: 1, err: err}
	}
	defer created.Close()
	if err := running(); err != nil || detach {
		return err
	}
	for _, fd := range options.Preserve {
		unix.Close(int(fd))
	}
	front.confine = func() { p.warnOf(created.Confine()) }
	status, err := front.wait(created.Process())
	front.close()
	p.warnKilled(created.Container, status)
	switch {
	case !keep:
		err = errors.Join(err, created.Delete(true))
	case err == nil:
		err = created.NoteEnd(status)
	}
	if err != nil {
		return err
	}
	if code := exitCode(status); code != 0 {
		return &exitStatus{code: code}
	}
	return nil
}

// passReady waits until the process has said that it is ready, where systemd
// waits for that.
func passReady(n *container.Notifier) error {
	if n == nil {
		return nil
	}
	defer n.Close()
	return n.Pass(true)
}
