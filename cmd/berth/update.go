package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// updateOptions are the limits of a command line.
type updateOptions struct {
	file    string
	memory  specs.LinuxMemory
	cpu     specs.LinuxCPU
	pids    specs.LinuxPids
	io      specs.LinuxBlockIO
	changes container.Changes
	given   []string // options that set a limit
	flags   map[string]string
}

func (p *program) updateCommand() *cli.Command {
	o := &updateOptions{flags: map[string]string{}}
	c := &cli.Command{
		Args: "ID", Least: 1, Most: 1,
		Summary: "Change the limits of a running container.",
		Help: "Limits that are not given stay unchanged. Sizes are in bytes, or with the suffix k, m, g or t;\n" +
			"-1 removes a limit. -r reads a resources object, like linux.resources in config.json; a list\n" +
			"of devices in it replaces the current one.",
		Examples: []string{
			"berth update --memory 512m --pids-limit 100 demo",
			"berth update demo --cpu-quota 50000 --cpu-period 100000",
			`echo '{"memory": {"limit": 268435456}}' | berth update -r - demo`,
		},
		Run: func(args []string) error {
			changes, err := o.resources(os.Stdin)
			if err != nil {
				return err
			}
			c, err := p.load(args[0])
			if err != nil {
				return err
			}
			defer c.Close()
			if *changes == (container.Changes{}) {
				p.log.Warn("no limit is given, so nothing changes; see berth update --help")
			}
			return o.name(c.Update(changes))
		},
	}
	o.define(&c.Flags)
	return c
}

func (o *updateOptions) define(f *cli.Flags) {
	f.String(&o.file, "resources", "r", "FILE", "read the limits from a resources object in a file, - for standard input")
	o.size(f, &o.memory.Limit, "memory", "/memory/limit", "memory limit")
	o.size(f, &o.memory.Reservation, "memory-reservation", "/memory/reservation", "soft limit: memory left to the container when memory is short")
	o.size(f, &o.memory.Swap, "memory-swap", "/memory/swap", "limit on memory plus swap")
	//lint:ignore SA1019 clients still have it
	o.size(f, &o.memory.Kernel, "kernel-memory", "/memory/kernel", "obsolete: kernel memory counts as memory")
	o.size(f, &o.memory.KernelTCP, "kernel-memory-tcp", "/memory/kernelTCP", "limit on TCP buffers (cgroup v1)")
	number(o, f, &o.cpu.Shares, "cpu-share", "/cpu/shares", "CPU weight relative to other containers, 2 to 262144", parseUint)
	number(o, f, &o.cpu.Quota, "cpu-quota", "/cpu/quota", "CPU time per period, in microseconds; -1 for no limit", parseInt)
	number(o, f, &o.cpu.Period, "cpu-period", "/cpu/period", "length of a period, in microseconds", parseUint)
	number(o, f, &o.cpu.Burst, "cpu-burst", "/cpu/burst", "unused CPU time that may accumulate, in microseconds", parseUint)
	number(o, f, &o.cpu.RealtimePeriod, "cpu-rt-period", "/cpu/realtimePeriod", "length of a realtime period, in microseconds (cgroup v1)", parseUint)
	number(o, f, &o.cpu.RealtimeRuntime, "cpu-rt-runtime", "/cpu/realtimeRuntime", "realtime CPU time per period, in microseconds (cgroup v1)", parseInt)
	number(o, f, &o.cpu.Idle, "cpu-idle", "/cpu/idle", "1: run only when a CPU would be idle; 0: normal", parseInt)
	o.text(f, &o.cpu.Cpus, "cpuset-cpus", "/cpu/cpus", "LIST", "CPUs to run on, such as 0-3,7")
	o.text(f, &o.cpu.Mems, "cpuset-mems", "/cpu/mems", "LIST", "memory nodes to use, such as 0-1")
	number(o, f, &o.pids.Limit, "pids-limit", "/pids/limit", "number of processes and threads; -1 for no limit", parseInt)
	number(o, f, &o.io.Weight, "blkio-weight", "/blockIO/weight", "block I/O weight relative to other containers, 10 to 1000", parseWeight)
	f.String(&o.changes.L3CacheSchema, "l3-cache-schema", "", "LINE", "Intel RDT: L3 cache, such as L3:0=ff;1=f0")
	f.String(&o.changes.MemBwSchema, "mem-bw-schema", "", "LINE", "Intel RDT: memory bandwidth, such as MB:0=20;1=70")
}

// resources are the limits that are asked for.
func (o *updateOptions) resources(stdin io.Reader) (*container.Changes, error) {
	changes := o.changes
	if o.file != "" {
		if len(o.given) > 0 {
			return nil, fmt.Errorf("--resources and --%s: limits come from the file or from options, not from both", o.given[0])
		}
		resources, err := readResources(o.file, stdin)
		if err != nil {
			return nil, err
		}
		changes.Resources, changes.Source = resources, inputName(o.file)
		return &changes, nil
	}
	if len(o.given) == 0 {
		return &changes, nil
	}
	r := &specs.LinuxResources{}
	if o.memory != (specs.LinuxMemory{}) {
		r.Memory = &o.memory
	}
	if o.cpu != (specs.LinuxCPU{}) {
		r.CPU = &o.cpu
	}
	if o.pids.Limit != nil {
		r.Pids = &o.pids
	}
	if o.io.Weight != nil {
		r.BlockIO = &o.io
	}
	changes.Resources = r
	return &changes, nil
}

func readResources(file string, stdin io.Reader) (*specs.LinuxResources, error) {
	data, err := readInput(file, stdin)
	if err != nil {
		return nil, fmt.Errorf("--resources: %w", err)
	}
	resources, err := spec.ParseResources(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", inputName(file), err)
	}
	return resources, nil
}

// name puts options in the place of the entries that an error names, unless they are a file's.
func (o *updateOptions) name(err error) error {
	if err == nil || o.file != "" {
		return err
	}
	text := err.Error()
	for pointer, flag := range o.flags {
		text = renamed(text, pointer, "--"+flag)
	}
	return &optionError{text, err}
}

// renamed puts another name in the place of a pointer, wherever that is a word by itself.
func renamed(text, pointer, name string) string {
	for at := 0; ; {
		found := strings.Index(text[at:], pointer)
		if found < 0 {
			return text
		}
		begin, end := at+found, at+found+len(pointer)
		if before, ok := strings.CutSuffix(text[:begin], "resources: "); ok && endsIn(before, " (") {
			begin = len(before)
		}
		if at = end; endsIn(text[:begin], " (") && (end == len(text) || strings.IndexByte(" :)", text[end]) >= 0) {
			text, at = text[:begin]+name+text[end:], begin+len(name)
		}
	}
}

// endsIn reports whether a text is empty, or ends in one of some characters.
func endsIn(text, some string) bool {
	return text == "" || strings.IndexByte(some, text[len(text)-1]) >= 0
}

// optionError is an error in the words of the command line.
type optionError struct {
	text  string
	cause error
}

func (e *optionError) Error() string { return e.text }
func (e *optionError) Unwrap() error { return e.cause }

func (o *updateOptions) add(f *cli.Flags, name, pointer, value, help string, set func(string) error) {
	o.flags[pointer] = name
	f.Func(name, "", value, help, func(text string) error {
		if err := set(text); err != nil {
			return err
		}
		o.given = append(o.given, name)
		return nil
	})
}

func (o *updateOptions) text(f *cli.Flags, to *string, name, pointer, value, help string) {
	o.add(f, name, pointer, value, help, func(text string) error {
		*to = text
		return nil
	})
}

func (o *updateOptions) size(f *cli.Flags, to **int64, name, pointer, help string) {
	o.add(f, name, pointer, "SIZE", help, func(text string) error {
		n, err := parseSize(text)
		*to = &n
		return err
	})
}

func number[T any](o *updateOptions, f *cli.Flags, to **T, name, pointer, help string, parse func(string) (T, error)) {
	o.add(f, name, pointer, "N", help, func(text string) error {
		n, err := parse(text)
		if err != nil {
			return fmt.Errorf("%q is not a number that it can take", text)
		}
		*to = &n
		return nil
	})
}

func parseInt(text string) (int64, error)   { return strconv.ParseInt(text, 10, 64) }
func parseUint(text string) (uint64, error) { return strconv.ParseUint(text, 10, 64) }

func parseWeight(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err
}

// parseSize reads a number of bytes, with a unit of 1024 or a power of it behind
// it: 10m, 1.5G, 64KiB. -1 means no limit.
func parseSize(text string) (int64, error) {
	wrong := fmt.Errorf("%q is not a size such as 1048576, 10m or 1.5G, nor -1 for no limit", text)
	if text == "-1" {
		return -1, nil
	}
	digits := strings.TrimRight(strings.ToLower(text), "bikmgtp ")
	unit := strings.TrimSpace(strings.ToLower(text)[len(digits):])
	shift := 0
	if unit != "" && unit != "b" {
		index := strings.IndexByte("kmgtp", unit[0])
		if index < 0 {
			return 0, wrong
		}
		switch unit[1:] {
		case "", "b", "ib":
		default:
			return 0, wrong
		}
		shift = 10 * (index + 1)
	}
	if n, err := strconv.ParseUint(digits, 10, 63); err == nil {
		if n > 1<<(63-shift)-1 {
			return 0, fmt.Errorf("%q is more than a limit can be", text)
		}
		return int64(n) << shift, nil
	}
	whole, part, found := strings.Cut(digits, ".")
	if !found || whole == "" || part == "" || strings.Trim(whole+part, "0123456789") != "" {
		return 0, wrong
	}
	value, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, wrong
	}
	if value *= float64(uint64(1) << shift); value >= 1<<62 {
		return 0, fmt.Errorf("%q is more than a limit can be", text)
	}
	return int64(value), nil
}
