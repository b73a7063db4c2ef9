package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/internal/start/entry"
	"golang.org/x/sys/unix"
)

func (p *program) cgroupExec() *cli.Command {
	var targets targetFlags
	c := &cli.Command{
		Args: "[PATH] COMMAND [ARG…]", Least: 1, Most: -1, FirstEnds: true,
		Summary: "Run a command in a cgroup.",
		Help: "The first argument is the cgroup's path, or, with -g, the command already. The command takes\n" +
			"the place of berth: its process, its signals and its exit status are the command's own.",
		Examples: []string{"berth cgroup exec demo make -j", "berth cgroup exec -g memory:/demo -g pids:/demo ./server"},
	}
	targets.define(&c.Flags)
	targets.defineForce(&c.Flags)
	stickyFlag(&c.Flags)
	c.Run = func(args []string) error {
		list, args, err := targets.leading(args)
		if err != nil {
			return err
		}
		if len(args) == 0 {
			return errors.New("no command is given: berth cgroup exec PATH COMMAND, or -g controllers:path COMMAND")
		}
		tools, err := p.cgroupTools(targets.force)
		if err != nil {
			return err
		}
		path, err := exec.LookPath(args[0])
		if err != nil {
			return cannotRun(args[0], err)
		}
		if err := tools.Join(list, []int{0}); err != nil {
			return err
		}
		entry.Restore()
		return cannotRun(args[0], unix.Exec(path, args, os.Environ()))
	}
	return c
}

// stickyFlag is for scripts that call cgexec and cgclassify, where it keeps cgrulesengd from moving the
// processes again. Nothing of Berth's moves a process by rules.
func stickyFlag(f *cli.Flags) {
	var always bool
	f.Bool(&always, "sticky", "", "taken for scripts of cgexec and cgclassify; it is always so here")
}

// cannotRun ends with the status that shells give to a command that is not
// there, or that cannot be executed.
func cannotRun(command string, err error) error {
	code := 126
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		code = 127
	}
	var inner *exec.Error
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return &exitStatus{code: code, err: fmt.Errorf("run %s: %w", command, err)}
}

func (p *program) cgroupClassify() *cli.Command {
	var targets targetFlags
	c := &cli.Command{
		Args: "[PATH] PID…", Least: 1, Most: -1,
		Summary: "Move processes into a cgroup.",
		Help: "The first argument is the cgroup's path, or, with -g, a process already. A process comes into all the\n" +
			"cgroups that are named, or stays where it is; one that can't be moved does not keep the others from it.",
		Examples: []string{"berth cgroup classify demo 4711 4712", "berth cgroup classify -g cpu:/demo $$"},
	}
	targets.define(&c.Flags)
	targets.defineForce(&c.Flags)
	stickyFlag(&c.Flags)
	c.Run = func(args []string) error {
		list, args, err := targets.leading(args)
		if err != nil {
			return err
		}
		var pids []int
		for _, arg := range args {
			pid, err := strconv.Atoi(arg)
			if err != nil || pid <= 0 {
				return fmt.Errorf("%q is no process number", arg)
			}
			pids = append(pids, pid)
		}
		if len(pids) == 0 {
			return errors.New("no process is named: berth cgroup classify PATH PID")
		}
		tools, err := p.cgroupTools(targets.force)
		if err != nil {
			return err
		}
		return tools.Join(list, pids)
	}
	return c
}
