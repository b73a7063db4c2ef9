package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cmd/berth/internal/box"
	"github.com/berth-runtime/berth/cmd/berth/internal/box/nat"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/engine/supervisor"
	"github.com/berth-runtime/berth/seccomp"
)

// boxOptions are the options of box that are not the box's own.
type boxOptions struct {
	box.Options
	seccomp string
	keep    bool
	dryRun  bool
	tty     bool // -t was given
	explain bool // what seccomp refuses
	denials *supervisor.Denials
	report  string // text, json or none; "" for text on a terminal
	into    string // the file that the report goes to; "" for standard error
	file    *os.File
	changes boxChanges
	image   boxImage
	learn   boxLearning
	net     string // "" for none, or for nat if there are ports
	ports   []nat.Port
	nat     *nat.Network // nil for another network
}

func (p *program) boxCommand() *cli.Command {
	o := &boxOptions{seccomp: "default", explain: true}
	c := &cli.Command{
		Args: "[COMMAND [ARG...]]", Most: -1, FirstEnds: true,
		Summary: "Run one command in a throwaway container built from this machine's own root file system.",
		Help: "It needs no image, no configuration and no root. The command sees the host's files; its writes\n" +
			"go to memory and are discarded when it ends. The current directory is read-only, /tmp and /run\n" +
			"are empty, and the only network device is loopback. Without COMMAND it runs a shell.\n" +
			"\n" +
			"The exit status is the command's, 128+N if signal N killed it, 124 if --timeout did, 127 if\n" +
			"the command was not found, 126 if it can't be executed, and 125 if the box could not be created.",
		Examples: []string{
			"berth box -- make test                              # can't break anything outside",
			"berth box --rw . --net host -- ./configure          # writes to this directory are kept",
			"berth box --memory 512M --cpus 1.5 -- ./server      # reproduce production's limits",
			"berth box --timeout 30s --report json:use -- ./job  # resource usage, for a script",
			"berth box --image debian.tar -- cat /etc/os-release # an image that docker save has written",
			"berth box --learn p.json -- make test               # then: berth box --seccomp p.json -- make test",
		},
		Run: func(args []string) error { return p.box(o, args) },
	}
	o.define(&c.Flags)
	for _, flag := range c.Flags.List {
		flag.Also = elsewhere[flag.Name]
	}
	c.Flags.Absent = func(name string) string { return notInBoxes[name] }
	return p.attended(c)
}

// limitFlags are those of a box, and of a command in a cgroup.
func limitFlags(f *cli.Flags, o *box.Options) {
	f.Func("memory", "m", "SIZE", "memory limit, such as 512M or 1.5G, with no swap on top", func(text string) (err error) {
		o.Memory, err = positiveSize(text)
		return err
	})
	f.Func("cpus", "c", "N", "CPU limit in processors, such as 1.5", func(text string) error {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 0.001 && n <= 1e6) {
			return fmt.Errorf("%q is not a number of processors such as 0.5 or 2", text)
		}
		o.CPUs = n
		return nil
	})
	pidsFlag(f, o, "pids", "limit on processes and threads")
}

func pidsFlag(f *cli.Flags, o *box.Options, name, help string) {
	f.Func(name, "", "N", help, func(text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is not a number of processes", text)
		}
		o.Pids = n
		return nil
	})
}

func (o *boxOptions) define(f *cli.Flags) {
	limitFlags(f, &o.Options)
	f.Func("io", "", "DEV:rbps=N", "limit on bytes (rbps, wbps) or operations (riops, wiops) per second; DEV is a disk, its number, or a path on it", func(text string) error {
		t, err := box.ParseThrottle(text, positiveSize)
		o.IO = append(o.IO, t)
		return err
	})
	f.Func("net", "", "none|nat|host", "network: loopback only (the default), one of its own that reaches out by pasta or slirp4netns, or the host's", o.network)
	f.Func("publish", "p", "[ADDRESS:]HOSTPORT:PORT[/udp]", "reach a port of the box by one of the host's; with --net nat, which it implies", func(text string) error {
		port, err := nat.ParsePort(text)
		o.ports = append(o.ports, port)
		return err
	})
	f.Func("ro", "", "PATH[:PLACE]", "bind mount a host path, read-only", func(text string) error { return o.bind("--ro", text, false) })
	f.Func("rw", "", "PATH[:PLACE]", "bind mount a host path; writes are kept", func(text string) error { return o.bind("--rw", text, true) })
	f.Func("show", "", "PATH", "don't hide this secret (by default ~/.ssh, ~/.aws and the like are hidden, and for root /etc/shadow); / for all", func(text string) error {
		name, err := box.RealPath(text)
		o.Show = append(o.Show, name)
		return err
	})
	f.Func("tmp", "", "PATH[:size=SIZE]", "mount an empty tmpfs", o.tmp)
	f.Func("env", "e", "NAME[=VALUE]", "pass an environment variable, or set it; by default only PATH, HOME, TERM and the locale are passed", func(text string) error {
		if text == "" || text[0] == '=' {
			return fmt.Errorf("%q names no variable", text)
		}
		o.Env = append(o.Env, text)
		return nil
	})
	f.String(&o.User, "user", "u", "USER[:GROUP]", "run as this user, by name or number")
	f.String(&o.Workdir, "workdir", "w", "DIR", "start in this directory (default: the current one)")
	f.String(&o.Rootfs, "rootfs", "", "DIR", "use this root file system instead of the host's")
	f.Func("timeout", "", "TIME", "kill it after this time, such as 30s or 1h30m", func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is not a length of time such as 30s or 500ms", text)
		}
		o.Timeout = d
		return nil
	})
	f.String(&o.seccomp, "seccomp", "", "default|none|FILE", "seccomp profile; FILE has the format of linux.seccomp in config.json")
	f.Bool(&o.explain, "explain-denials", "", denialsHelp+", in the report or if the command fails; on unless =false")
	o.image.define(f)
	o.learn.define(f)
	o.changes.define(f)
	o.words(f)
	f.Bool(&o.Nest, "nest", "", "let the command make boxes, or containers, as an ordinary user can outside")
	f.Bool(&o.keep, "keep", "", "keep the record of the box for berth inspect, until berth delete")
	f.Bool(&o.dryRun, "dry-run", "", "run nothing; show what the box would be, each line with the option that changes it")
	f.Func("report", "r", "text|json[:FILE]", "report resource usage at the end, on standard error or in FILE (- is standard output); or none (default: text on a terminal, elsewhere one line if a limit ended something)", func(text string) error {
		o.report, o.into, _ = strings.Cut(text, ":")
		switch o.report {
		case "text", "json", "none":
			return nil
		}
		return fmt.Errorf("%q is none of text, json and none", o.report)
	})
}

func (o *boxOptions) bind(option, text string, writable bool) error {
	b, err := box.ParseBind(text, writable)
	b.Option = option
	o.Binds = append(o.Binds, b)
	return err
}

func positiveSize(text string) (int64, error) {
	n, err := parseSize(text)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q is not a size such as 512M or 1.5G", text)
	}
	return n, err
}

// complete turns what is to be looked up into what the box is made of.
func (o *boxOptions) complete(args []string) error {
	if err := o.checkRights(); err != nil {
		return err
	}
	if err := o.misread(args); err != nil {
		return err
	}
	o.Command = args
	if len(o.Command) == 0 {
		shell := os.Getenv("SHELL")
		if shell == "" || o.Rootfs != "" {
			shell = "/bin/sh"
		}
		o.Command = []string{shell}
	}
	if o.Command[0] == "" {
		return noCommand
	}
	if o.Rootfs != "" {
		dir, err := filepath.Abs(o.Rootfs)
		if err != nil {
			return err
		}
		if info, err := os.Stat(dir); err != nil {
			return fmt.Errorf("--rootfs: %w", err)
		} else if !info.IsDir() {
			return fmt.Errorf("--rootfs %s: not a directory", o.Rootfs)
		}
		o.Rootfs = dir
	}
	if o.Workdir != "" && !filepath.IsAbs(o.Workdir) && o.Rootfs == "" {
		dir, err := box.Abs(o.Workdir)
		if err != nil {
			return err
		}
		o.Workdir = dir
	}
	switch o.seccomp {
	case "default":
		with := o.Capabilities()
		if o.Nest {
			with = append(with, "CAP_SYS_ADMIN") // which users have in namespaces of their own
		}
		o.Seccomp = seccomp.Default(with...)
	case "none":
	default:
		data, err := os.ReadFile(o.seccomp)
		if err != nil {
			return fmt.Errorf("--seccomp: %w", err)
		}
		if o.Seccomp, err = spec.ParseSeccomp(data); err != nil {
			return fmt.Errorf("--seccomp %s: %w", o.seccomp, err)
		}
	}
	return nil
}
