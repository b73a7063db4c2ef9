package container

import (
	"fmt"
	"strconv"
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// namespaceWith makes a user namespace with the given mappings, for the mapping
// of a mount, and returns a descriptor of it. It lives by that alone: the child
// that it was made with is killed at once.
func namespaceWith(uid, gid []specs.LinuxIDMapping) (int, error) {
	pidfd := -1
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"berth-userns"}, &syscall.ProcAttr{
		Env: []string{},
		Sys: &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER, UidMappings: sysMap(uid), GidMappings: sysMap(gid), GidMappingsEnableSetgroups: true,
			// It stops before its first instruction, so nothing of it ever runs.
			Ptrace: true, PidFD: &pidfd,
		},
	})
	if err != nil {
		return -1, fmt.Errorf("make a user namespace with its mappings: %w", err)
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/user", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	_ = unix.PidfdSendSignal(pidfd, unix.SIGKILL, nil, 0)
	unix.Close(pidfd)
	var status unix.WaitStatus
	for {
		_, werr := unix.Wait4(pid, &status, 0, nil)
		if werr == nil && (status.Exited() || status.Signaled()) || werr != nil && werr != unix.EINTR {
			break
		}
	}
	if err != nil {
		return -1, fmt.Errorf("open a user namespace with its mappings: %w", err)
	}
	return fd, nil
}
