package seccomp

import (
	"strconv"
	"syscall"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// What a filter returns, <linux/seccomp.h>: the action in the upper 16 bits, its data in the lower.
const (
	retKillProcess = 0x80000000
	retKillThread  = 0x00000000
	retTrap        = 0x00030000
	retErrno       = 0x00050000
	retUserNotif   = 0x7fc00000
	retTrace       = 0x7ff00000
	retLog         = 0x7ffc0000
	retAllow       = 0x7fff0000

	retActionFull = 0xffff0000
	retData       = 0x0000ffff
)

// maxErrno is the kernel's MAX_ERRNO: it cuts a greater one down to this without a word.
const maxErrno = 4095

// actionValue is the value of SECCOMP_RET_* behind an action's name.
func actionValue(action specs.LinuxSeccompAction) (value uint32, ok bool) {
	switch action {
	case specs.ActKill, specs.ActKillThread:
		// SCMP_ACT_KILL is the older name of SCMP_ACT_KILL_THREAD, in libseccomp's header as in the
		// kernel's.
		return retKillThread, true
	case specs.ActKillProcess:
		return retKillProcess, true
	case specs.ActTrap:
		return retTrap, true
	case specs.ActErrno:
		return retErrno, true
	case specs.ActTrace:
		return retTrace, true
	case specs.ActAllow:
		return retAllow, true
	case specs.ActLog:
		return retLog, true
	case specs.ActNotify:
		return retUserNotif, true
	}
	return 0, false
}

// actionOf is the action behind what a filter returns.
func actionOf(value uint32) specs.LinuxSeccompAction {
	switch value & retActionFull {
	case retKillThread:
		return specs.ActKillThread
	case retTrap:
		return specs.ActTrap
	case retErrno:
		return specs.ActErrno
	case retUserNotif:
		return specs.ActNotify
	case retTrace:
		return specs.ActTrace
	case retLog:
		return specs.ActLog
	case retAllow:
		return specs.ActAllow
	}
	return specs.ActKillProcess // the kernel's own way with what it doesn't know
}

// checkAction turns an action and its errno into what the filter returns.
func checkAction(at, action string, errno *uint, errnoAt string) (uint32, error) {
	value, ok := actionValue(specs.LinuxSeccompAction(action))
	if !ok {
		return 0, unknownValue(at, "action", action, actionNames[:])
	}
	if value != retErrno && value != retTrace {
		if errno != nil {
			return 0, &ProfileError{errnoAt, "the action " + action + " has no errno; only SCMP_ACT_ERRNO and SCMP_ACT_TRACE do"}
		}
		return value, nil
	}
	if errno == nil {
		return value | uint32(syscall.EPERM), nil
	}
	limit := uint(maxErrno)
	if value == retTrace {
		limit = retData // the tracer's message, which may be anything that fits
	}
	if *errno > limit {
		return 0, &ProfileError{errnoAt, strconv.FormatUint(uint64(*errno), 10) + " is not an errno; the greatest that " + action +
			" can give is " + strconv.FormatUint(uint64(limit), 10)}
	}
	return value | uint32(*errno), nil
}

// stricter gives the one of two results that the kernel would prefer of two filters: the lesser as
// a signed number.
func stricter(a, b uint32) uint32 {
	if int32(b&retActionFull) < int32(a&retActionFull) {
		return b
	}
	return a
}

// denies reports whether the value denies a call without asking a listener or tracer.
func denies(value uint32) bool {
	switch value & retActionFull {
	case retKillProcess, retKillThread, retTrap, retErrno:
		return true
	}
	return false
}

// describe is a returned value in words of the profile.
func describe(value uint32) string {
	data := value & retData
	switch value & retActionFull {
	case retKillProcess:
		return "KILL_PROCESS"
	case retKillThread:
		return "KILL_THREAD"
	case retTrap:
		return "TRAP"
	case retErrno:
		return "ERRNO " + errnoName(data)
	case retUserNotif:
		return "NOTIFY"
	case retTrace:
		return "TRACE " + strconv.FormatUint(uint64(data), 10)
	case retLog:
		return "LOG"
	case retAllow:
		return "ALLOW"
	}
	return "0x" + strconv.FormatUint(uint64(value), 16)
}

func errnoName(errno uint32) string {
	if errno == 0 {
		return "0 (the call seems to succeed)"
	}
	if name := unix.ErrnoName(syscall.Errno(errno)); name != "" {
		return name
	}
	return strconv.FormatUint(uint64(errno), 10)
}
