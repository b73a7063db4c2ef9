package ociexec

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// consoleTimeout is for a runtime that says it has made the container, but has
// not sent the terminal. It is sent before that, so this is never waited for.
const consoleTimeout = 10_000 // milliseconds

// consoleSocket is where a runtime sends the master of a terminal.
type consoleSocket struct {
	dir, path string
	fd        int
}

// newConsoleSocket listens in a directory of its own in the temporary directory: the
// path of a bundle may be longer than the 107 bytes that a socket can have.
func newConsoleSocket() (*consoleSocket, error) {
	dir, err := os.MkdirTemp("", "berth-pty-")
	if err != nil {
		return nil, fmt.Errorf("create a directory for the console socket: %w", err)
	}
	s := &consoleSocket{dir: dir, path: filepath.Join(dir, "s"), fd: -1}
	s.fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err == nil {
		err = unix.Bind(s.fd, &unix.SockaddrUnix{Name: s.path})
	}
	if err == nil {
		err = unix.Listen(s.fd, 1)
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("listen on console socket %s: %w", s.path, err)
	}
	return s, nil
}

// receive takes the terminal from a runtime that has done its work.
func (s *consoleSocket) receive() (*os.File, error) {
	if err := readable(s.fd); err != nil {
		return nil, fmt.Errorf("wait for the runtime to send the terminal: %w", err)
	}
	conn, _, err := unix.Accept4(s.fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("accept on the console socket: %w", err)
	}
	defer unix.Close(conn)
	if err := readable(conn); err != nil {
		return nil, fmt.Errorf("wait for the terminal: %w", err)
	}
	name, control := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(conn, name, control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("receive the terminal: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("the runtime sent %d control messages with the terminal, not one: %v", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("the runtime sent %d descriptors as the terminal, not one: %v", len(fds), err)
	}
	// The copy of its output waits in the runtime's poller.
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		return nil, fmt.Errorf("make the terminal non-blocking: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "console"), nil
}

func readable(fd int) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, consoleTimeout)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return err
		case n == 0:
			return unix.ETIMEDOUT
		default:
			return nil
		}
	}
}

func (s *consoleSocket) close() {
	if s.fd >= 0 {
		unix.Close(s.fd)
	}
	os.RemoveAll(s.dir)
}
