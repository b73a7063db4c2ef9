package ttrpc

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Path is the file behind an address of the forms "unix:///x", "unix:/x" and "/x".
func Path(address string) string {
	return strings.TrimPrefix(strings.TrimPrefix(address, "unix://"), "unix:")
}

func newSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, fmt.Errorf("create a unix socket: %w", err)
	}
	return fd, nil
}

// Dial connects to the socket at path. It never waits: connecting to a unix
// socket succeeds at once, or fails with EAGAIN when too many are in its queue.
func Dial(path string) (*os.File, error) {
	fd, err := newSocket()
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("connect to %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Listen makes the socket at path, for its owner alone. The error wraps
// EADDRINUSE when the file is there, whether or not a process serves it.
//
// The socket is made under another name, and gets its own when it listens: so
// one that refuses connections has a dead server.
// Callers keep each other apart: what there is of the other name is taken for
// that of one who was killed.
func Listen(path string) (*os.File, error) {
	fd, err := newSocket()
	if err != nil {
		return nil, err
	}
	making := Unfinished(path)
	_ = unix.Unlink(making)
	if err = unix.Bind(fd, &unix.SockaddrUnix{Name: making}); err == nil {
		if err = unix.Chmod(making, 0o600); err == nil {
			err = unix.Listen(fd, unix.SOMAXCONN)
		}
		if err == nil {
			err = unix.Renameat2(unix.AT_FDCWD, making, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
		}
		if err == unix.EEXIST {
			err = unix.EADDRINUSE
		}
		if err != nil {
			unix.Unlink(making)
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Unfinished is the name of the socket at path until it is listened on.
func Unfinished(path string) string { return path + "~" }

// Accept waits for the next connection of a listening socket.
func Accept(listener *os.File) (*os.File, error) {
	raw, err := listener.SyscallConn()
	if err != nil {
		return nil, err
	}
	conn, acceptErr := -1, error(nil)
	err = raw.Read(func(fd uintptr) bool {
		for {
			conn, _, acceptErr = unix.Accept4(int(fd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			if acceptErr != unix.EINTR && acceptErr != unix.ECONNABORTED {
				return acceptErr != unix.EAGAIN
			}
		}
	})
	if err == nil {
		err = acceptErr
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(conn), "ttrpc connection"), nil
}

// SamePeer says whether the process that connected is of our own user and
// group, because any process that can call a shim can start processes as root.
func SamePeer(conn *os.File) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var sockErr error
	if err := raw.Control(func(fd uintptr) {
		peer, sockErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if sockErr != nil {
		return fmt.Errorf("ask for the peer's credentials: %w", sockErr)
	}
	if int(peer.Uid) != os.Geteuid() || int(peer.Gid) != os.Getegid() {
		return fmt.Errorf("peer with pid %d is of user %d and group %d, not ours", peer.Pid, peer.Uid, peer.Gid)
	}
	return nil
}
