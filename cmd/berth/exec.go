package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/caps"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// execOptions are the options of exec.
type execOptions struct {
	process       string
	console       string
	pidfd         string
	pidFile       string
	cwd           string
	env           []string
	tty           bool
	user          string
	groups        []string
	detach        bool
	label         string
	apparmor      string
	noNewPrivs    bool
	hasNoNewPrivs bool
	capabilities  []string
	preserveFDs   int
	cgroups       []string
	ignorePaused  bool
	explain       bool
	noSubreaper   bool
}

func (p *program) execCommand() *cli.Command {
	var o execOptions
	c := &cli.Command{
		Args: "ID COMMAND [ARG...]", Least: 1, Most: -1, FirstEnds: true,
		Summary: "Run another process in a container.",
		Help: "Anything not set by an option is taken from the container's own process. The exit status is\n" +
			"the process's, or 255 if it could not be started.",
		Examples: []string{"berth exec -t demo sh", "berth exec --user 1000:1000 demo id"},
		Run:      func(args []string) error { return p.exec(args[0], args[1:], &o) },
	}
	f := &c.Flags
	f.String(&o.process, "process", "p", "FILE", "process object to run, instead of COMMAND")
	f.String(&o.console, "console-socket", "", "SOCKET", "send the terminal's pty master to this unix socket")
	f.String(&o.pidfd, "pidfd-socket", "", "SOCKET", "send a pidfd of the process to this unix socket")
	f.String(&o.pidFile, "pid-file", "", "FILE", "write the pid of the process to this file")
	f.String(&o.cwd, "cwd", "", "DIR", "working directory in the container")
	f.Strings(&o.env, "env", "e", "NAME=VALUE", "set an environment variable (may be repeated)")
	f.Bool(&o.tty, "tty", "t", "give the process a terminal")
	f.String(&o.user, "user", "u", "USER[:GROUP]", "run as this user and group, by name or number")
	f.Strings(&o.groups, "additional-gids", "g", "GID", "additional group (may be repeated)")
	f.Bool(&o.detach, "detach", "d", "detach: return once the process runs")
	f.String(&o.label, "process-label", "", "LABEL", "SELinux label of the process")
	f.String(&o.apparmor, "apparmor", "", "NAME", "AppArmor profile of the process")
	f.Func("no-new-privs", "", "", "set no_new_privs", func(v string) error {
		o.noNewPrivs, o.hasNoNewPrivs = v == "true", true
		return nil
	})
	f.Strings(&o.capabilities, "cap", "c", "CAPABILITY", "add a capability (may be repeated)")
	f.Int(&o.preserveFDs, "preserve-fds", "", "N", "pass N more file descriptors, from 3, to the process")
	f.Strings(&o.cgroups, "cgroup", "", "SUBGROUP", "run in a sub-cgroup of the container")
	f.Bool(&o.ignorePaused, "ignore-paused", "", "also exec in a paused container")
	explainFlag(f, &o.explain)
	f.Bool(&o.noSubreaper, "no-subreaper", "", "accepted for callers of old").Hidden = true
	return c
}

func (p *program) exec(id string, args []string, o *execOptions) error {
	failed := func(err error) error { return &exitStatus{code: 255, err: err} }
	c, err := p.load(id)
	if err != nil {
		return failed(err)
	}
	defer c.Close()
	options, err := o.options(c, args, p.log.Warn)
	if err != nil {
		// A user can't be looked up in a container that has stopped, of which clients want to hear.
		return failed(cmp.Or(c.CanExec(o.ignorePaused), err))
	}
	var front *foreground
	switch {
	case o.detach && o.explain:
		return failed(errors.New("--explain-denials is for the foreground: berth has to stay with the process"))
	case o.explain:
		denials := explainDenials(&options.IO)
		defer func() { p.warnDenials(denials) }()
	}
	if !o.detach {
		if front, err = p.newForeground(); err != nil {
			return failed(err)
		}
		defer front.close()
		options.Signals, options.Interrupted = front.signals, front.interrupted
		if o.console == "" {
			options.Console = front.console
		}
	}
	child, err := c.Exec(options)
	if err != nil {
		return failed(err)
	}
	if o.detach {
		child.Detach()
		return nil
	}
	c.Close()
	for _, fd := range options.Preserve {
		unix.Close(int(fd))
	}
	front.confine = func() { p.warnOf(container.ConfineToSignals()) }
	status, err := front.wait(child)
	if err != nil {
		return failed(err)
	}
	front.close()
	if status.Signaled() && status.Signal() == unix.SIGSYS {
		if c, err := p.load(id); err == nil {
			p.warnKilled(c, status)
			c.Close()
		}
	}
	if code := exitCode(status); code != 0 {
		return &exitStatus{code: code}
	}
	return nil
}

func (o *execOptions) options(c *container.Container, args []string, warn func(string)) (*container.ExecOptions, error) {
	process, err := o.processOf(c, args, warn)
	if err != nil {
		return nil, err
	}
	preserve, err := preserved(0, o.preserveFDs) // sockets are for the container's first process
	if err != nil {
		return nil, err
	}
	options := &container.ExecOptions{
		Process: process, PidFile: o.pidFile, IgnorePaused: o.ignorePaused,
		IO: container.IO{Stdio: [3]uintptr{0, 1, 2}, Preserve: preserve, ConsoleSocket: o.console, PidfdSocket: o.pidfd},
	}
	for _, text := range o.cgroups {
		controllers, path, found := strings.Cut(text, ":")
		if !found {
			controllers, path = "", text
		}
		if options.Cgroups == nil {
			options.Cgroups = map[string]string{}
		}
		for controller := range strings.SplitSeq(controllers, ",") {
			options.Cgroups[controller] = path
		}
	}
	return options, nil
}

// processOf makes the process object: the file's, or the container's own with
// what the options change.
func (o *execOptions) processOf(c *container.Container, args []string, warn func(string)) (*specs.Process, error) {
	if o.process != "" {
		data, err := os.ReadFile(o.process)
		if err != nil {
			return nil, fmt.Errorf("--process: %w", err)
		}
		process, err := spec.ParseProcess(data)
		if err != nil {
			return nil, fmt.Errorf("--process %s: %w", o.process, err)
		}
		return process, nil
	}
	if len(args) == 0 {
		return nil, errors.New("no command to run is given, nor --process")
	}
	process, err := c.Template()
	if err != nil {
		return nil, err
	}
	process.Args = args
	process.Terminal = o.tty
	if o.cwd != "" {
		process.Cwd = o.cwd
	}
	process.Env = append(process.Env, o.env...)
	if o.label != "" {
		process.SelinuxLabel = o.label
	}
	if o.apparmor != "" {
		process.ApparmorProfile = o.apparmor
	}
	if o.hasNoNewPrivs {
		process.NoNewPrivileges = o.noNewPrivs
	}
	o.addCapabilities(process, warn)
	return process, o.setUser(c, process)
}

// addCapabilities adds to the sets that the process itself has. What is inheritable goes
// on to programs that were never meant to have it (CVE-2022-29162), and is only what the
// config says. What that makes inheritable becomes ambient as well, or a process that is
// not root would lose it by its execve.
func (o *execOptions) addCapabilities(process *specs.Process, warn func(string)) {
	if len(o.capabilities) == 0 {
		return
	}
	if process.Capabilities == nil {
		process.Capabilities = &specs.LinuxCapabilities{}
	}
	sets := process.Capabilities
	for _, name := range o.capabilities {
		name = strings.ToUpper(name)
		if !strings.HasPrefix(name, "CAP_") {
			name = "CAP_" + name
		}
		if _, known := caps.Number(name); !known {
			warn("--cap: unknown capability \"" + name + "\" is left out (capabilities(7) lists them)")
			continue
		}
		sets.Bounding = append(sets.Bounding, name)
		sets.Effective = append(sets.Effective, name)
		sets.Permitted = append(sets.Permitted, name)
		if slices.Contains(sets.Inheritable, name) {
			sets.Ambient = append(sets.Ambient, name)
		}
	}
}

func (o *execOptions) setUser(c *container.Container, process *specs.Process) error {
	if o.user != "" {
		user, _, err := c.Accounts().User(o.user, process.User)
		if err != nil {
			return fmt.Errorf("--user: %w", err)
		}
		user.Umask = process.User.Umask
		process.User = user
	}
	for _, text := range o.groups {
		gid, err := c.Accounts().Group(text)
		if err != nil {
			return fmt.Errorf("--additional-gids: %w", err)
		}
		process.User.AdditionalGids = append(process.User.AdditionalGids, gid)
	}
	return nil
}
