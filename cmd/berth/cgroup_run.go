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
		Args: "[CGROUP] COMMAND [ARG…]", Least: 1, Most: -1, FirstEnds: true,
		Summary: "Run a command in an existing cgroup.",
		Help: "The first argument is the cgroup's path or, with -g, already the command. The command replaces\n" +
			"berth, so its pid, signals and exit status are its own.\n" + ownStatus,
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
		if len(args) > 0 && args[0] == "--" {
			args = args[1:] // behind the path, as other commands have it before all arguments
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
	return p.attended(c)
}

// stickyFlag is for scripts that call cgexec and cgclassify, where it keeps cgrulesengd from moving
// the processes again. Nothing of Berth's moves a process by rules.
func stickyFlag(f *cli.Flags) {
	var always bool
	f.Bool(&always, "sticky", "", "accepted for cgexec and cgclassify scripts; has no effect, as nothing moves processes later")
}

// ownStatus is for the help of the commands that are attended.
const ownStatus = "Where it could not be run, the exit status is 127 if it was not found, 126 if it can't be\n" +
	"executed, and 125 for any other failure."

// cannotRun ends with the status that shells give to a command that is not there, or that cannot be
// executed. Where there is no process for it, that says nothing of the command.
func cannotRun(command string, err error) error {
	code := notExecutable
	var inner *exec.Error
	switch {
	case command == "":
		code, err = notFound, exec.ErrNotFound
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		code = notFound
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ENFILE), errors.Is(err, unix.EMFILE):
		code = noBox
	}
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return &exitStatus{code: code, err: fmt.Errorf("run %s: %w", command, err)}
}

func (p *program) cgroupClassify() *cli.Command {
	var targets targetFlags
	c := &cli.Command{
		Args: "[CGROUP] PID…", Least: 1, Most: -1,
		Summary: "Move processes into a cgroup.",
		Help: "The first argument is the cgroup's path or, with -g, already a pid. A process is moved into all\n" +
			"named cgroups or into none; one that can't be moved does not stop the others.\n" +
			"Without -g it stays in its systemd unit in hierarchies that have no controllers.",
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
				return fmt.Errorf("%q is not a process number", arg)
			}
			pids = append(pids, pid)
		}
		if len(pids) == 0 {
			return errors.New("no process is named: berth cgroup classify CGROUP PID")
		}
		tools, err := p.cgroupTools(targets.force)
		if err != nil {
			return err
		}
		return tools.Join(list, pids)
	}
	return c
}
