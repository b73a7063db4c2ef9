package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cmd/berth/internal/box"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/seccomp"
)

// boxOptions are the options of box that are not the box's own.
type boxOptions struct {
	box.Options
	seccomp string
	keep    bool
	report  string // text, json or none; "" for text on a terminal
	into    string // the file that the report goes to; "" for standard error
	file    *os.File
}

func (p *program) boxCommand() *cli.Command {
	o := &boxOptions{seccomp: "default"}
	c := &cli.Command{
		Args: "[COMMAND [ARG...]]", Most: -1, FirstEnds: true,
		Summary: "Run one command in a throwaway container made from this machine's own root.",
		Help: "It needs no image, no configuration and no root. The command sees the files of the machine;\n" +
			"what it writes is kept in memory and lost at its end. The current folder is there read-only,\n" +
			"/tmp and /run are empty, and there is no network but itself. Without COMMAND it is a shell.\n\n" +
			"The exit status is the command's, 128+N where signal N killed it, 124 where --timeout did, 127\n" +
			"where there is no such command, 126 where it can't be executed, and 125 where there was no box.",
		Examples: []string{
			"berth box -- make test                              # can break nothing but itself",
			"berth box --rw . --net host -- ./configure          # its results are kept, in this folder",
			"berth box --memory 512M --cpus 1.5 -- ./server      # reproduce what production does",
			"berth box --timeout 30s --report json:use -- ./job  # what it took, for a script",
		},
		Run: func(args []string) error { return p.box(o, args) },
	}
	o.define(&c.Flags)
	return c
}

// limitFlags are those of a box, and of a command in a cgroup.
func limitFlags(f *cli.Flags, o *box.Options) {
	f.Func("memory", "m", "SIZE", "at most so much memory, as 512M or 1.5G, no swap on top", func(text string) (err error) {
		o.Memory, err = positiveSize(text)
		return err
	})
	f.Func("cpus", "c", "N", "at most so many processors' time, as 1.5", func(text string) error {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !(n >= 0.001 && n <= 1e6) {
			return fmt.Errorf("%q is no number of processors such as 0.5 or 2", text)
		}
		o.CPUs = n
		return nil
	})
	f.Func("pids", "p", "N", "at most so many processes and threads", func(text string) error {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("%q is no number of processes", text)
		}
		o.Pids = n
		return nil
	})
}

func (o *boxOptions) define(f *cli.Flags) {
	limitFlags(f, &o.Options)
	f.Func("io", "", "DEV:rbps=N", "at most so many bytes (rbps, wbps) or operations (riops, wiops) a second; DEV is a disk, its number, or a path on it", func(text string) error {
		t, err := box.ParseThrottle(text, positiveSize)
		o.IO = append(o.IO, t)
		return err
	})
	f.Func("net", "", "none|host", "the network: none but itself (the default), or the host's", func(text string) error {
		if text != "none" && text != "host" {
			return fmt.Errorf("%q is neither none nor host", text)
		}
		o.HostNet = text == "host"
		return nil
	})
	f.Func("ro", "", "PATH[:PLACE]", "show a path of the host as it is, read-only", func(text string) error { return o.bind(text, false) })
	f.Func("rw", "", "PATH[:PLACE]", "show a path of the host as it is; what is written there is kept", func(text string) error { return o.bind(text, true) })
	f.Strings(&o.Tmp, "tmp", "", "PATH", "an empty folder in memory")
	f.Func("env", "e", "NAME[=VALUE]", "pass a variable on, or set it; others than PATH, HOME, TERM and the language are not passed", func(text string) error {
		if text == "" || text[0] == '=' {
			return fmt.Errorf("%q names no variable", text)
		}
		o.Env = append(o.Env, text)
		return nil
	})
	f.String(&o.User, "user", "u", "USER[:GROUP]", "run as this user, by name or number")
	f.String(&o.Workdir, "workdir", "w", "DIR", "begin in this folder, instead of the current one")
	f.String(&o.Rootfs, "rootfs", "", "DIR", "take this folder for the root, instead of the machine's own")
	f.Func("timeout", "t", "TIME", "kill it after so long, as 30s or 1h30m", func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is no length of time such as 30s or 500ms", text)
		}
		o.Timeout = d
		return nil
	})
	f.String(&o.seccomp, "seccomp", "", "default|none|FILE", "which system calls are let through; FILE is a profile as config.json has it")
	f.Bool(&o.keep, "keep", "", "keep the record of the box, for berth inspect; berth delete removes it")
	f.Func("report", "r", "text|json[:FILE]", "tell at the end what it used, on standard error or in FILE; none is nothing (default: text on a terminal, elsewhere a line where a limit ended something)", func(text string) error {
		o.report, o.into, _ = strings.Cut(text, ":")
		switch o.report {
		case "text", "json", "none":
			return nil
		}
		return fmt.Errorf("%q is none of text, json and none", o.report)
	})
}

func (o *boxOptions) bind(text string, writable bool) error {
	b, err := box.ParseBind(text, writable)
	o.Binds = append(o.Binds, b)
	return err
}

func positiveSize(text string) (int64, error) {
	n, err := parseSize(text)
	if err == nil && n <= 0 {
		err = fmt.Errorf("%q is no size such as 512M or 1.5G", text)
	}
	return n, err
}

// complete turns what is to be looked up into what the box is made of.
func (o *boxOptions) complete(args []string) error {
	o.Command = args
	if len(args) == 0 {
		shell := os.Getenv("SHELL")
		if shell == "" || o.Rootfs != "" {
			shell = "/bin/sh"
		}
		o.Command = []string{shell}
	}
	if o.Rootfs != "" {
		dir, err := filepath.Abs(o.Rootfs)
		if err != nil {
			return err
		}
		if info, err := os.Stat(dir); err != nil {
			return fmt.Errorf("--rootfs: %w", err)
		} else if !info.IsDir() {
			return fmt.Errorf("--rootfs %s: it is no folder", o.Rootfs)
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
	for i, name := range o.Tmp {
		if !filepath.IsAbs(name) {
			return fmt.Errorf("--tmp %s: it is no absolute path", name)
		}
		if o.Tmp[i] = filepath.Clean(name); o.Tmp[i] == "/" {
			return errors.New("--tmp /: the root of the box can't be replaced like this (see --rootfs)")
		}
	}
	switch o.seccomp {
	case "default":
		o.Seccomp = seccomp.Default(box.Capabilities()...)
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
