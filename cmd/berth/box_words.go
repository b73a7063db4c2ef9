package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/cmd/berth/internal/box"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/internal/caps"
)

// words are the options by which docker and podman know what a box has too.
func (o *boxOptions) words(f *cli.Flags) {
	f.Func("volume", "v", "SRC:DST[:ro]", "bind mount a host path; writes are kept unless :ro", o.volume)
	f.Func("mount", "", "type=bind|tmpfs,...", "the same in docker's long form: type=bind,src=PATH,dst=PLACE,readonly or type=tmpfs,dst=PATH,tmpfs-size=SIZE", o.mount)
	f.Func("device", "", "PATH[:PLACE[:rwm]]", "let the box use a device of the host, such as /dev/fuse", func(text string) error {
		d, err := box.ParseDevice(text)
		if err == nil && os.Geteuid() != 0 && strings.Trim(d.Access, "m") != "rw" {
			err = fmt.Errorf("%q: only root's cgroups can allow a part of rw", text)
		}
		o.Devices = append(o.Devices, d)
		return err
	})
	f.Func("network", "", "none|nat|host", "the same as --net", o.network)
	f.Func("tmpfs", "", "PATH[:size=SIZE]", "the same as --tmp", o.tmp)
	f.Func("env-file", "", "FILE", "set the variables of a file: NAME=VALUE lines, or NAME to pass one", o.envFile)
	f.Func("hostname", "", "NAME", "host name in the box", func(text string) error {
		if text == "" || len(text) > 64 {
			return fmt.Errorf("%q is not a host name of 1 to 64 bytes", text)
		}
		o.Hostname = text
		return nil
	})
	f.Func("ulimit", "", "NAME=SOFT[:HARD]", "resource limit of setrlimit(2), such as nofile=1024 or core=unlimited", o.ulimit)
	f.Func("cap-add", "", "CAPABILITY", "also keep a capability, such as NET_RAW", func(text string) error {
		if capabilityName(text) == "CAP_ALL" {
			return errors.New("a box has not all of them: name those that it needs")
		}
		return o.capability(&o.CapAdd, text)
	})
	f.Func("cap-drop", "", "CAPABILITY|ALL", "drop a capability", func(text string) error {
		return o.capability(&o.CapDrop, text)
	})
	f.String(&o.CPUSet, "cpuset-cpus", "", "LIST", "processors to run on, such as 0-3,5")
	pidsFlag(f, &o.Options, "pids-limit", "the same as --pids")
	// A box has a terminal where its caller has one, and is removed at its end.
	f.Bool(new(bool), "interactive", "i", "no effect: standard input is always passed on")
	f.Bool(&o.tty, "tty", "t", "no effect: a box has a terminal if its three standard streams are one")
	f.Bool(new(bool), "rm", "", "no effect: a box is removed when it ends, unless --keep")
}

// misread finds a command line that means what the letter -t meant before.
func (o *boxOptions) misread(args []string) error {
	if !o.tty || len(args) == 0 {
		return nil
	}
	if _, err := time.ParseDuration(args[0]); err == nil {
		return fmt.Errorf("-t is about the terminal, as elsewhere: the time limit is --timeout %s", args[0])
	}
	return nil
}

// volume reads SRC:DST or SRC:DST:OPTIONS.
func (o *boxOptions) volume(text string) error {
	fields := strings.Split(text, ":")
	if len(fields) < 2 || len(fields) > 3 {
		return fmt.Errorf("%q is not SRC:DST or SRC:DST:ro with paths of the host and of the box (there are no named volumes)", text)
	}
	writable := true
	if len(fields) == 3 {
		for word := range strings.SplitSeq(fields[2], ",") {
			switch word {
			case "ro":
				writable = false
			case "rw", "z", "Z": // labels are not changed
			default:
				return fmt.Errorf("%q: unknown option %s, it takes ro and rw", text, word)
			}
		}
	}
	if !strings.Contains(fields[0], "/") && fields[0] != "." && fields[0] != ".." {
		if _, err := os.Stat(fields[0]); err != nil {
			return fmt.Errorf("%q: there are no named volumes, and no such file: ./%s", text, fields[0])
		}
	}
	return o.bind("--volume", fields[0]+":"+fields[1], writable)
}

// mount reads docker's list of key=value.
func (o *boxOptions) mount(text string) error {
	kind, source, target, size, writable := "", "", "", "", true
	for field := range strings.SplitSeq(text, ",") {
		key, value, given := strings.Cut(field, "=")
		switch key {
		case "type":
			kind = value
		case "src", "source":
			source = value
		case "dst", "destination", "target":
			target = value
		case "ro", "readonly":
			writable = given && value != "true" && value != "1"
		case "tmpfs-size":
			size = value
		default:
			return fmt.Errorf("%q: unknown key %s, it takes type, src, dst, readonly and tmpfs-size", text, key)
		}
	}
	switch {
	case kind == "tmpfs" && source == "" && writable:
		if size != "" {
			target += ":size=" + size
		}
		return o.tmp(target)
	case kind == "bind" && source != "" && target != "" && size == "" && !strings.Contains(source, ":"):
		return o.bind("--mount", source+":"+target, writable)
	case kind == "volume", kind == "":
		return fmt.Errorf("%q: say type=bind or type=tmpfs (there are no named volumes)", text)
	}
	return fmt.Errorf("%q is neither type=bind,src=PATH,dst=PLACE[,readonly] nor type=tmpfs,dst=PATH[,tmpfs-size=SIZE]", text)
}

// tmp reads PATH, PATH:size=N, and docker's other options of it that a box has anyhow.
func (o *boxOptions) tmp(text string) error {
	name, options, _ := strings.Cut(text, ":")
	if !filepath.IsAbs(name) {
		return fmt.Errorf("%s: it is not an absolute path", name)
	}
	if name = filepath.Clean(name); name == "/" {
		return errors.New("the root of the box can't be replaced like this (see --rootfs)")
	}
	if options != "" {
		size, ok := strings.CutPrefix(options, "size=")
		if !ok {
			return fmt.Errorf("%q: unknown option %s, it takes size=SIZE", text, options)
		}
		n, err := positiveSize(size)
		if err != nil {
			return err
		}
		if o.TmpSize == nil {
			o.TmpSize = map[string]int64{}
		}
		o.TmpSize[name] = n
	}
	o.Tmp = append(o.Tmp, name)
	return nil
}

func (o *boxOptions) envFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	n := 0
	for line := range strings.SplitSeq(string(text), "\n") {
		n++
		line = strings.TrimLeft(strings.TrimSuffix(line, "\r"), " \t")
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '=' || strings.ContainsRune(line, 0) {
			return fmt.Errorf("%s:%d: it names no variable", name, n)
		}
		o.Env = append(o.Env, line)
	}
	return nil
}

// ulimit reads NAME=SOFT[:HARD] by the names of ulimit(1) and prlimit(1).
func (o *boxOptions) ulimit(text string) error {
	name, value, ok := strings.Cut(text, "=")
	soft, hard, both := strings.Cut(value, ":")
	if !both {
		hard = soft
	}
	limit := specs.POSIXRlimit{Type: "RLIMIT_" + strings.ToUpper(name)}
	var err1, err2 error
	limit.Soft, err1 = limitNumber(soft)
	limit.Hard, err2 = limitNumber(hard)
	if !ok || name == "" || err1 != nil || err2 != nil {
		return fmt.Errorf("%q is not NAME=SOFT:HARD such as nofile=1024:4096", text)
	}
	if limit.Soft > limit.Hard {
		return fmt.Errorf("%q: the soft limit is above the hard one", text)
	}
	for i := range o.Rlimits {
		if o.Rlimits[i].Type == limit.Type {
			o.Rlimits[i] = limit
			return nil
		}
	}
	o.Rlimits = append(o.Rlimits, limit)
	return nil
}

func limitNumber(text string) (uint64, error) {
	if text == "unlimited" || text == "-1" {
		return ^uint64(0), nil
	}
	return strconv.ParseUint(text, 10, 64)
}

// capability adds one to a list. A name that is misspelled would leave what was to be dropped.
func (o *boxOptions) capability(list *[]string, text string) error {
	name := capabilityName(text)
	if _, known := caps.Number(name); !known && name != "CAP_ALL" {
		return fmt.Errorf("unknown capability %q (capabilities(7) has the list)", text)
	}
	*list = append(*list, name)
	return nil
}

// capabilityName is the full name of a capability.
func capabilityName(text string) string {
	name := strings.ToUpper(text)
	if !strings.HasPrefix(name, "CAP_") {
		name = "CAP_" + name
	}
	return name
}
