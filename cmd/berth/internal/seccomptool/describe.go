package seccomptool

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/seccomp"
)

// describe is a call with the argument by which filters tell good from bad.
func describe(c *seccomp.Call) string {
	name := c.Name()
	a := argumentOf(name)
	if a == nil || a.memory {
		return c.String()
	}
	value := c.Args[a.index] & (1<<32 - 1)
	text := "0x" + strconv.FormatUint(value, 16)
	switch name {
	case "clone", "unshare":
		text = namespaceFlags(value)
	case "setns":
		if value != 0 {
			text = namespaceFlags(value)
		}
	case "socket", "socketpair":
		text = family(value)
	case "prctl", "ptrace", "bpf", "seccomp", "keyctl":
		text = strconv.FormatUint(value, 10)
	}
	return name + "(" + text + ")"
}

// namespaceFlags names those of clone(2), and leaves out its other ones.
func namespaceFlags(value uint64) string {
	var words []string
	for _, f := range [...]struct {
		bit  uint64
		name string
	}{
		{unix.CLONE_NEWNS, "CLONE_NEWNS"}, {unix.CLONE_NEWCGROUP, "CLONE_NEWCGROUP"}, {unix.CLONE_NEWUTS, "CLONE_NEWUTS"},
		{unix.CLONE_NEWIPC, "CLONE_NEWIPC"}, {unix.CLONE_NEWUSER, "CLONE_NEWUSER"}, {unix.CLONE_NEWPID, "CLONE_NEWPID"},
		{unix.CLONE_NEWNET, "CLONE_NEWNET"}, {unix.CLONE_NEWTIME, "CLONE_NEWTIME"},
	} {
		if value&f.bit != 0 {
			words = append(words, f.name)
		}
	}
	if len(words) == 0 {
		return "0x" + strconv.FormatUint(value, 16)
	}
	return strings.Join(words, "|")
}

func family(value uint64) string {
	switch value {
	case unix.AF_UNIX:
		return "AF_UNIX"
	case unix.AF_INET:
		return "AF_INET"
	case unix.AF_INET6:
		return "AF_INET6"
	case unix.AF_NETLINK:
		return "AF_NETLINK"
	case unix.AF_PACKET:
		return "AF_PACKET"
	case unix.AF_ALG:
		return "AF_ALG"
	case unix.AF_VSOCK:
		return "AF_VSOCK"
	}
	return strconv.FormatUint(value, 10)
}
