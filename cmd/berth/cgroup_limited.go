package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cmd/berth/internal/box"
	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/settings"
	"golang.org/x/sys/unix"
)

func (p *program) cgroupRun() *cli.Command {
	var limits box.Options
	var path string
	c := &cli.Command{
		Args: "COMMAND [ARG…]", Least: 1, Most: -1, FirstEnds: true,
		Summary: "Run a command with limits, in its own cgroup.",
		Help: "The command and everything it starts are in a new cgroup from its first instruction. When the\n" +
			"command ends, what it left running is killed and the cgroup is removed. The exit status is the\n" +
			"command's; if something was OOM-killed, a message says so. Under systemd the cgroup is in a scope\n" +
			"of its own, like a container's, and like one of systemd-run --scope.\n" +
			ownStatus,
		Examples: []string{"berth cgroup run --memory 8G -- make -j", "berth cgroup run --cpus 1.5 --pids 200 ./test-suite"},
		Run:      func(args []string) error { return p.runLimited(&limits, path, args) },
	}
	limitFlags(&c.Flags, &limits)
	c.Flags.String(&path, "path", "", "CGROUP", "name of the cgroup, which must not exist yet (default run-PID, under systemd in a scope of its own)")
	return p.attended(c)
}

func (p *program) runLimited(limits *box.Options, path string, args []string) error {
	tools, err := p.cgroupTools(false)
	if err != nil {
		return err
	}
	if path == "" {
		if err := p.enterScope(tools); err != nil {
			return err
		}
		path = "run-" + strconv.Itoa(os.Getpid())
	}
	target, err := cgrouptool.ParseTarget(path)
	if err != nil {
		return err
	}
	made, err := tools.Create(target, cgrouptool.Access{})
	if err != nil {
		return err
	}
	if len(made) == 0 {
		return fmt.Errorf("--path %s: the cgroup exists already: berth cgroup exec runs a command in it", path)
	}
	g, err := tools.Open(target)
	if err != nil {
		return err
	}
	defer g.Close()
	code, err := under(g, limits, args)
	end := g.Purge()
	if end == nil {
		end = tools.Tidy(target)
	}
	if err == nil {
		err = end
	}
	if err != nil {
		return err
	}
	if code != 0 {
		return &exitStatus{code: code}
	}
	return nil
}

// enterScope gives this process the place of a container, where that is a scope of systemd's. On
// version 1 an ordinary user's systemd has no controllers, and so no limits, to give.
func (p *program) enterScope(tools *cgrouptool.Tools) error {
	s, err := p.settings()
	user := host.UserSystemd()
	if err != nil || s.Driver == settings.Cgroupfs || s.Driver == settings.Auto && !systemd.Booted() || user && tools.Host.Mode() != cgroup.Unified {
		return err
	}
	return tools.EnterScope(plan.UnitParent(user, s.Parent), user)
}

// under runs a command under limits in a cgroup, and gives its exit status.
func under(g *cgroup.Group, limits *box.Options, args []string) (code int, err error) {
	if _, err := g.Set(limits.Limits()); err != nil {
		return 0, errors.New(limits.Blame(err.Error()))
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	// Those of the keyboard reach the command as well as us; others are passed on.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH)
	defer signal.Stop(signals)
	if err := g.Start(cmd); err != nil {
		return 0, cannotRun(args[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s != unix.SIGINT && s != unix.SIGQUIT && s != unix.SIGWINCH {
				_ = cmd.Process.Signal(s)
			}
		case err := <-ended:
			tellOOM(g, limits)
			var exited *exec.ExitError
			switch {
			case err == nil:
				return 0, nil
			case !errors.As(err, &exited):
				return 0, err
			}
			status := exited.Sys().(syscall.WaitStatus)
			if status.Signaled() {
				return 128 + int(status.Signal()), nil
			}
			return status.ExitStatus(), nil
		}
	}
}

func tellOOM(g *cgroup.Group, limits *box.Options) {
	s, err := g.Stats(cgroup.Memory)
	if err != nil || s.Memory == nil {
		return
	}
	if oom := box.OOMOf(limits, s.Memory); oom != nil {
		fmt.Fprintln(os.Stderr, "berth cgroup run: "+oom.Killed())
	}
}
