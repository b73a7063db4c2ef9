package seccomp

import (
	"fmt"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go/features"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/sys"
)

// Load puts the filter in force for the calling thread and all that it starts, or with
// SECCOMP_FILTER_FLAG_TSYNC for all threads of the process. Nothing takes it off again.
//
// Without that flag the goroutine has to have its thread for itself (runtime.LockOSThread), and to
// start a program from there; the other threads are not filtered. With it, the filter has to let
// through what Go's runtime itself calls.
//
// The thread must have no_new_privs set (prctl(2)), or CAP_SYS_ADMIN in its user namespace.
//
// The listener is a descriptor, close-on-exec, for SECCOMP_IOCTL_NOTIF_RECV where the filter
// notifies, else -1. The caller owns it.
func (f *Filter) Load() (listener int, err error) {
	result, err := sys.SetSeccompFilter(f.Flags, f.Bytes())
	switch {
	case err == unix.EACCES:
		return -1, fmt.Errorf("load seccomp filter: %w; set no_new_privs first, or have CAP_SYS_ADMIN", err)
	case err == unix.EBUSY && f.Notify:
		return -1, fmt.Errorf("load seccomp filter: %w; another filter of this thread has a listener, and there can be one only", err)
	case err == unix.EINVAL && !sys.SeccompFlagsKnown(f.Flags):
		return -1, fmt.Errorf("load seccomp filter: %w; this kernel doesn't know all of the profile's flags", err)
	case err != nil:
		return -1, fmt.Errorf("load seccomp filter: %w", err)
	case f.Notify:
		return result, nil
	case result != 0:
		return -1, fmt.Errorf("load seccomp filter: thread %d has a filter that this one doesn't have, so it can't be taken along", result)
	}
	return -1, nil
}

// Supported is what this package and, for the flags, this kernel can do, as the features document
// has it.
func Supported() *features.Seccomp {
	enabled := true
	s := &features.Seccomp{Enabled: &enabled, Actions: slices.Clone(actionNames[:]),
		Operators: slices.Clone(operatorNames[:]), Archs: archNames(), KnownFlags: slices.Clone(flagNames[:])}
	for _, name := range flagNames {
		flag := flagValue(name)
		if flag == FlagWaitKillableRecv {
			flag |= FlagNewListener // without a listener it is refused
		}
		if sys.SeccompFlagsKnown(flag) {
			s.SupportedFlags = append(s.SupportedFlags, name)
		}
	}
	return s
}
