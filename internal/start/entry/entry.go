package entry

import (
	"runtime"
	"syscall"
)

// entered is set where berth_entry was the entry.
var entered bool

// slack is our caller's timer slack, in nanoseconds: 0 for a real-time thread, which
// has none, and less than that where the kernel would not tell.
var slack int64

// oneProc is what is added to the environment, in words that no one else uses: where
// our caller has a GOMAXPROCS, that one comes first and counts.
var oneProc = [...]byte{'G', 'O', 'M', 'A', 'X', 'P', 'R', 'O', 'C', 'S', '=', '0', '0', '1', 0}

func init() {
	if !entered {
		return
	}
	Restore()
	beginKept()
	const name = "GOMAXPROCS"
	if value, _ := syscall.Getenv(name); value == string(oneProc[len(name)+1:len(oneProc)-1]) {
		_ = syscall.Unsetenv(name)
	}
}

// Restore gives the calling thread our caller's timer slack. It is for what is about
// to fork something that lasts, or to execute it: some of Go's threads are from
// before the first init, or from one that is.
func Restore() {
	if slack > 0 {
		_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, uintptr(slack), 0)
	}
}

// Slack is our caller's timer slack, for a process that can see to it itself; 0 where
// it has nothing to do.
func Slack() uint64 { return uint64(max(slack, 0)) }

// ForkExec is syscall.ForkExec from a thread that has been given our caller's timer slack.
func ForkExec(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	Restore()
	return syscall.ForkExec(path, argv, attr)
}
