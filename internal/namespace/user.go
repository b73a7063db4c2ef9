package namespace

import (
	"fmt"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// NewUser makes a user namespace with the given mappings and returns a descriptor of it, by which
// alone it lives on: the process that it is made with is killed at once. Where another goroutine
// waits for children of any pid, it must leave that process to us.
func NewUser(uid, gid []syscall.SysProcIDMap) (int, error) {
	// The signal of Pdeathsig comes when this thread ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"berth-userns"}, &syscall.ProcAttr{
		Env: []string{},
		Sys: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER, UidMappings: uid, GidMappings: gid, GidMappingsEnableSetgroups: true,
			// It stops before its first instruction, so nothing of the program ever runs; were
			// we killed, it would go on.
			Ptrace: true, Pdeathsig: unix.SIGKILL,
		},
	})
	if err != nil {
		return -1, fmt.Errorf("make a user namespace with these id maps: %w", err)
	}
	fd, err := Open(pid, "user")
	// It has not been waited for, so that the pid is still its own.
	_ = unix.Kill(pid, unix.SIGKILL)
	var status unix.WaitStatus
	for {
		_, werr := unix.Wait4(pid, &status, 0, nil)
		if werr == nil && (status.Exited() || status.Signaled()) || werr != nil && werr != unix.EINTR {
			break
		}
	}
	return fd, err
}
