package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/container"
	"golang.org/x/sys/unix"
)

func (p *program) startCommand() *cli.Command {
	return &cli.Command{
		Args: "ID", Least: 1, Most: 1, Summary: "Start the program of a created container.",
		Run: func(args []string) error {
			r, err := p.runtime()
			if err != nil {
				return err
			}
			c, err := r.LoadLocked(args[0])
			if err != nil {
				return err
			}
			defer c.Close()
			notifier, err := c.Notifier(os.Getenv("NOTIFY_SOCKET"))
			if err == nil {
				err = c.Start()
			}
			if err != nil {
				return err
			}
			return passReady(notifier)
		},
	}
}

func (p *program) pauseCommand() *cli.Command {
	return p.simple("Freeze all processes of a container.", (*container.Container).Pause)
}

func (p *program) resumeCommand() *cli.Command {
	return p.simple("Resume all processes of a paused container.", (*container.Container).Resume)
}

// simple is a command that does one thing to one container.
func (p *program) simple(summary string, do func(*container.Container) error) *cli.Command {
	return &cli.Command{
		Args: "ID", Least: 1, Most: 1, Summary: summary,
		Run: func(args []string) error {
			c, err := p.load(args[0])
			if err != nil {
				return err
			}
			defer c.Close()
			return do(c)
		},
	}
}

func (p *program) killCommand() *cli.Command {
	var all bool
	c := &cli.Command{
		Args: "ID [SIGNAL]", Least: 1, Most: 2,
		Summary: "Send a signal (default: TERM) to a container's first process.",
		Run: func(args []string) error {
			name := "TERM"
			if len(args) > 1 {
				name = args[1]
			}
			signal, err := parseSignal(name)
			if err != nil {
				return err
			}
			c, err := p.load(args[0])
			if err != nil {
				return err
			}
			defer c.Close()
			err = c.Kill(signal, all)
			if all && errors.Is(err, container.ErrNotRunning) {
				return nil // there is none that it could have missed
			}
			return err
		},
	}
	c.Flags.Bool(&all, "all", "a", "send it to all processes of the container")
	return c
}

// parseSignal reads a number, or a name with or without SIG.
func parseSignal(text string) (unix.Signal, error) {
	if n, err := strconv.Atoi(text); err == nil {
		if n < 0 || n > 64 {
			return 0, fmt.Errorf("signal %d: there are 1 to 64, and 0 to probe", n)
		}
		return unix.Signal(n), nil
	}
	name := strings.ToUpper(text)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	if n := unix.SignalNum(name); n != 0 {
		return n, nil
	}
	if offset, ok := strings.CutPrefix(name, "SIGRTMIN+"); ok || name == "SIGRTMIN" {
		// 34 is the first that the C libraries leave to programs (signal(7)).
		if n, err := strconv.Atoi("0" + offset); err == nil && n <= 30 {
			return unix.Signal(34 + n), nil
		}
	}
	return 0, fmt.Errorf("unknown signal %q: it is a name such as TERM, SIGTERM or RTMIN+3, or a number", text)
}

func (p *program) deleteCommand() *cli.Command {
	var force bool
	c := &cli.Command{
		Args: "ID...", Least: 1, Most: -1,
		Summary: "Delete a stopped container and everything created for it.",
		Help: "With --force a running container is killed first, what a killed command left behind is\n" +
			"removed, and an unknown id is not an error. Processes of others in its cgroup make delete\n" +
			"fail; with --force they and the cgroup are left, with a warning.",
		Run: func(args []string) error {
			r, err := p.runtime()
			if err != nil {
				return err
			}
			var failed error
			for _, id := range args {
				failed = errors.Join(failed, remove(r, id, force))
			}
			return failed
		},
	}
	c.Flags.Bool(&force, "force", "f", "kill the container if it is running")
	return c
}

func remove(r *container.Runtime, id string, force bool) error {
	load := r.LoadLocked
	if force {
		load = r.LoadForDelete
	}
	c, err := load(id)
	if force && errors.Is(err, container.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Delete(force)
}
