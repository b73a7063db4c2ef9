package main

import (
	"bytes"
	"math/bits"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/inside/view"
)

// limitNames are the resources of getrlimit(2) by their numbers, which are the same on amd64, arm64
// and most others.
var limitNames = [...]string{
	"RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_DATA", "RLIMIT_STACK", "RLIMIT_CORE", "RLIMIT_RSS", "RLIMIT_NPROC", "RLIMIT_NOFILE",
	"RLIMIT_MEMLOCK", "RLIMIT_AS", "RLIMIT_LOCKS", "RLIMIT_SIGPENDING", "RLIMIT_MSGQUEUE", "RLIMIT_NICE", "RLIMIT_RTPRIO", "RLIMIT_RTTIME",
}

// limits asks the kernel for every resource limit. RLIMIT_NOFILE's soft value is not to be trusted:
// the start of every Go program raises it (package os). A test of that one asks the shell's ulimit.
func limits() map[string]view.Limit {
	out := map[string]view.Limit{}
	for number, name := range limitNames {
		var l unix.Rlimit
		if unix.Prlimit(0, number, nil, &l) == nil {
			out[name] = view.Limit{Soft: l.Cur, Hard: l.Max}
		}
	}
	return out
}

func scheduler() view.Sched {
	a, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return view.Sched{}
	}
	return view.Sched{
		Policy: a.Policy, Flags: a.Flags, Nice: a.Nice, Priority: a.Priority,
		Runtime: a.Runtime, Deadline: a.Deadline, Period: a.Period,
		UtilMin: a.Util_min, UtilMax: a.Util_max,
	}
}

func ioPriority() view.IOPrio {
	const whoProcess = 1
	value, _, errno := unix.RawSyscall(unix.SYS_IOPRIO_GET, whoProcess, 0, 0)
	if errno != 0 {
		return view.IOPrio{Class: -1}
	}
	return view.IOPrio{Class: int(value >> 13), Level: int(value & 0x1fff)}
}

// memoryPolicy is the policy of the first mapping, as /proc/self/numa_maps prints it: "default",
// "bind:0", "interleave=static:0-1". A mapping without a policy of its own shows that of the
// process. It is empty on a kernel without NUMA.
func memoryPolicy() string {
	words := strings.Fields(read("/proc/self/numa_maps"))
	if len(words) < 2 {
		return ""
	}
	return words[1]
}

func affinity() []int {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	var cpus []int
	for word, value := range set {
		for ; value != 0; value &= value - 1 {
			cpus = append(cpus, word*64+bits.TrailingZeros64(uint64(value)))
		}
	}
	return cpus
}

// sessionKeyring is the description of the session keyring: type;uid;gid;perm;name.
func sessionKeyring() string {
	buf := make([]byte, 256)
	n, err := unix.KeyctlBuffer(unix.KEYCTL_DESCRIBE, unix.KEY_SPEC_SESSION_KEYRING, buf, 0)
	if err != nil {
		return "error: " + errnoName(err)
	}
	return string(bytes.TrimRight(buf[:min(n, len(buf))], "\x00"))
}
