package seccomptool

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/supervisor"
	"github.com/berth-runtime/berth/seccomp"
)

// A Logged call is what a line of the kernel's log says, AUDIT_SECCOMP (1326).
type Logged struct {
	Arch    specs.Arch
	Number  uint32
	Name    string // "" for a number that is no system call's
	Program string
	Path    string
	Pid     string
	Action  string // what the filter did, "" where the line is cut off
}

// ErrNotSeccomp says that a line is about something else.
var ErrNotSeccomp = errors.New("no line that the kernel writes of seccomp: it has type=1326 (or SECCOMP), arch= and syscall=")

// ParseLogged reads a line as dmesg, journalctl -k and ausearch show it.
func ParseLogged(line string) (*Logged, error) {
	fields := map[string]string{}
	for _, word := range strings.Fields(line) {
		if name, value, ok := strings.Cut(word, "="); ok {
			fields[name] = strings.Trim(value, `"`)
		}
	}
	if t := fields["type"]; t != "1326" && t != "SECCOMP" {
		return nil, ErrNotSeccomp
	}
	// ausearch -i has names in these places, and the numbers nowhere.
	arch, err := strconv.ParseUint(fields["arch"], 16, 32)
	number, err2 := strconv.ParseUint(fields["syscall"], 10, 32)
	if err != nil || err2 != nil {
		return nil, ErrNotSeccomp
	}
	l := &Logged{Number: uint32(number), Program: fields["comm"], Path: fields["exe"], Pid: fields["pid"]}
	if l.Arch = seccomp.ArchOf(uint32(arch), l.Number); l.Arch == "" {
		return nil, fmt.Errorf("arch=%s is no architecture of the OCI runtime spec", fields["arch"])
	}
	l.Name, _ = seccomp.SyscallName(l.Arch, l.Number)
	if code, err := strconv.ParseUint(fields["code"], 0, 32); err == nil {
		l.Action = actionOf(uint32(code))
	}
	return l, nil
}

// actionOf is what the filter returned.
func actionOf(code uint32) string {
	switch code & unix.SECCOMP_RET_ACTION_FULL {
	case unix.SECCOMP_RET_KILL_PROCESS:
		return "KILL_PROCESS"
	case unix.SECCOMP_RET_KILL_THREAD:
		return "KILL_THREAD"
	case unix.SECCOMP_RET_TRAP:
		return "TRAP"
	case unix.SECCOMP_RET_ERRNO:
		return "ERRNO " + supervisor.Errno(unix.Errno(code&unix.SECCOMP_RET_DATA))
	case unix.SECCOMP_RET_TRACE:
		return "TRACE"
	case unix.SECCOMP_RET_LOG:
		return "LOG"
	}
	return ""
}

// String is one line, as mkdirat (258 of SCMP_ARCH_X86_64) by sh[12] (/bin/sh): LOG.
func (l *Logged) String() string {
	name := l.Name
	if name == "" {
		name = "no known call"
	}
	s := fmt.Sprintf("%s (%d of %s)", name, l.Number, l.Arch)
	if l.Program != "" {
		s += " by " + l.Program
		if l.Pid != "" {
			s += "[" + l.Pid + "]"
		}
	}
	if l.Path != "" {
		s += " (" + l.Path + ")"
	}
	if l.Action != "" {
		s += ": " + l.Action
	}
	return s
}
