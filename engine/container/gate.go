package container

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// gate makes the listening socket that the first process waits at. It is
// bound through the directory's descriptor: a socket address holds 108 bytes, and
// a root directory's path may be longer.
func (m opener) gate() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("make the start gate: %w", err)
	}
	m.fds = append(m.fds, fd)
	// bind(2) takes the file's mode from the socket's, less the umask; any mode that
	// lets others write lets them start the container.
	if err := unix.Fchmod(fd, 0o600); err != nil {
		return -1, fmt.Errorf("make the start gate: %w", err)
	}
	if err := unix.Bind(fd, m.gateAddress()); err != nil {
		return -1, fmt.Errorf("bind the start gate: %w", err)
	}
	if err := unix.Listen(fd, 8); err != nil {
		return -1, fmt.Errorf("listen at the start gate: %w", err)
	}
	return fd, nil
}

func (c *Container) gateAddress() unix.Sockaddr {
	return &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(c.dir) + "/" + gateFile}
}

// atGate reports whether the first process still waits for its start: the gate
// is there, and nothing but our init has been executed.
func (c *Container) atGate() bool {
	var st unix.Stat_t
	if unix.Fstatat(c.dir, gateFile, &st, unix.AT_SYMLINK_NOFOLLOW) == unix.ENOENT {
		return false
	}
	return isInit(c.Pid)
}

// isInit reports whether a process is an init of ours that has not executed the
// container's program.
func isInit(pid int) bool {
	program, err := executable(pid)
	if err == unix.ENOENT || err == unix.ESRCH {
		return false
	}
	// A rootless runtime may not look at a process that is not dumpable, which is
	// what our init is until it executes the program.
	return err != nil || program == "/memfd:berth-init (deleted)"
}

// executable tells what a process executes; one on its way out has no program any
// more, which is ENOENT.
func executable(pid int) (string, error) {
	var buf [64]byte
	n, err := unix.Readlink("/proc/"+strconv.Itoa(pid)+"/exe", buf[:])
	return string(buf[:max(n, 0)]), err
}
