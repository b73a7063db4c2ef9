package container

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/atomicfile"
)

// deliverConsole hands the master of the container's terminal over, with the settings of any new
// terminal: clients that copy the output to a terminal in raw mode, as those of Kubernetes and
// containerd do, rely on its carriage returns. It takes a copy; the descriptor stays the caller's.
func (o *IO) deliverConsole(fd int) error {
	if err := isMaster(fd); err != nil {
		return err
	}
	if o.Console != nil {
		own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("keep the terminal: %w", err)
		}
		if err := unix.SetNonblock(own, true); err != nil {
			unix.Close(own)
			return fmt.Errorf("keep the terminal: %w", err)
		}
		return o.Console(os.NewFile(uintptr(own), "/dev/ptmx"))
	}
	if err := sendDescriptor(o.ConsoleSocket, "/dev/ptmx", fd); err != nil {
		return fmt.Errorf("--console-socket: %w", err)
	}
	return nil
}

// isMaster makes sure that what was opened in the container by the name of a master is
// one. A file system in user space answers each ioctl as it pleases: with the number of
// any descriptor, say, in place of the terminal's other side.
func isMaster(fd int) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return os.NewSyscallError("fstat", err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != unix.Mkdev(5, 2) {
		return errors.New("/dev/pts/ptmx is not the device 5:2 that makes terminals (is a devpts mounted on /dev/pts?)")
	}
	return nil
}

// socketBound is how long a socket may keep us waiting that does not accept connections: once its
// queue is full, the kernel has the next ones wait for ever (listen(2)).
const socketBound = 5 * time.Second

// sendDescriptor connects to a socket and sends one descriptor with some data, such as its name.
func sendDescriptor(path, data string, fd int) error {
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s)
	bound := unix.NsecToTimeval(int64(socketBound))
	if err := unix.SetsockoptTimeval(s, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &bound); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	// With a bound, neither call begins anew by itself when a signal interrupts it (signal(7)).
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Connect(s, &unix.SockaddrUnix{Name: path})
	}
	if err == unix.EAGAIN {
		err = fmt.Errorf("it has accepted no connection for %v", socketBound)
	}
	if err != nil {
		return fmt.Errorf("connect to %s: %w", path, err)
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Sendmsg(s, []byte(data), unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
	}
	if err != nil {
		return fmt.Errorf("send a descriptor to %s: %w", path, err)
	}
	return nil
}

// writePidFile writes the digits of a pid.
func writePidFile(path string, pid int) error {
	if err := atomicfile.Write(unix.AT_FDCWD, path, strconv.AppendInt(nil, int64(pid), 10), 0o644); err != nil {
		return fmt.Errorf("--pid-file: %w", err)
	}
	return nil
}
