package container

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/berth-runtime/berth/engine/plan"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// notifyDir is the directory in the container's own that holds its notify socket, and
// notifyMaking the socket while it is made, beside it, where no process of the container sees it.
const (
	notifyDir    = "notify"
	notifyMaking = "notify.new"
)

// makeNotifyDir makes the directory that the plan mounts, read-only: it is on the host's /run.
func (m *maker) makeNotifyDir() error {
	if m.plan.NotifyDir == "" {
		return nil
	}
	if err := unix.Mkdirat(m.dir, notifyDir, 0o755); err != nil {
		return fmt.Errorf("make the directory of the notify socket: %w", err)
	}
	return nil
}

// A Notifier passes on what the process of a unit with Type=notify says of itself to the
// socket that we were given (sd_notify(3)). Its own words on its pid and on descriptors do
// not go there: they mean something else out here.
type Notifier struct {
	from, to int
	address  unix.Sockaddr
	pid      int
	pidfd    int
}

// Notifier begins to listen to the process of a container that was made with a
// NotifySocket; it is nil for others, and for one that can't be started, of which
// Start says why. It comes before the start, since a datagram to a socket that is
// not bound is lost.
func (c *Container) Notifier(socket string) (*Notifier, error) {
	if c.status() != specs.StateCreated {
		return nil, nil
	}
	return c.notifier(socket)
}

// Notifier is the same for a container that has been made just now: one that is to run at
// once waits at no gate.
func (c *Created) Notifier(socket string) (*Notifier, error) { return c.notifier(socket) }

func (c *Container) notifier(socket string) (*Notifier, error) {
	if socket == "" || !c.has(notifyDir) {
		return nil, nil
	}
	n := &Notifier{from: -1, to: -1, pidfd: -1, pid: c.Pid, address: &unix.SockaddrUnix{Name: socket}}
	if err := n.listen(c); err != nil {
		n.Close()
		return nil, err
	}
	return n, nil
}

func (n *Notifier) listen(c *Container) (err error) {
	if n.pidfd, err = c.Pidfd(); err != nil {
		return err
	}
	if n.from, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return fmt.Errorf("make the notify socket: %w", err)
	}
	if err := n.bind(c); err != nil {
		_ = unix.Unlinkat(c.dir, notifyMaking, 0)
		return err
	}
	if n.to, err = unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return fmt.Errorf("make a socket for NOTIFY_SOCKET: %w", err)
	}
	return nil
}

// bind puts the socket into the container's sight when it is done with. A process that
// is allowed to mount can write to that directory all the same, so nothing in it is looked
// up: what stands where the socket goes, a link too, is replaced by the rename.
func (n *Notifier) bind(c *Container) error {
	_ = unix.Unlinkat(c.dir, notifyMaking, 0)
	if err := unix.Bind(n.from, &unix.SockaddrUnix{Name: "/proc/self/fd/" + strconv.Itoa(c.dir) + "/" + notifyMaking}); err != nil {
		return fmt.Errorf("bind the notify socket: %w", err)
	}
	// The process may have any uid; only the container's processes can reach the directory.
	// chmod(2) of the descriptor that bind took would change sockfs alone.
	fd, err := unix.Openat(c.dir, notifyMaking, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), 0o666)
		unix.Close(fd)
	}
	if err != nil {
		return fmt.Errorf("open the notify socket to the container: %w", err)
	}
	dir, err := unix.Openat(c.dir, notifyDir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err == nil {
		err = unix.Renameat(c.dir, notifyMaking, dir, plan.NotifySocket)
		unix.Close(dir)
	}
	if err != nil {
		return fmt.Errorf("move the notify socket into its directory: %w", err)
	}
	return nil
}

// Close gives the descriptors back, after a Pass that has ended.
func (n *Notifier) Close() {
	for _, fd := range []int{n.from, n.to, n.pidfd} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

// Pass passes messages on until the process has ended or, with ready, until it
// has said that it is ready. Then systemd is told to watch the process instead of
// us, who go. Who stays must remain the unit's main process: with
// NotifyAccess=main systemd hears that one only, and no messages to come.
func (n *Notifier) Pass(ready bool) error {
	buf, control := make([]byte, 8192), make([]byte, 4096)
	for {
		fds := []unix.PollFd{{Fd: int32(n.from), Events: unix.POLLIN}, {Fd: int32(n.pidfd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil {
			return fmt.Errorf("wait for the container to be ready: %w", err)
		}
		if fds[0].Revents&unix.POLLIN == 0 {
			return nil
		}
		size, oobn, _, _, err := unix.Recvmsg(n.from, buf, control, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
		if err != nil {
			if err == unix.EINTR || err == unix.EAGAIN {
				continue
			}
			return fmt.Errorf("read the notify socket: %w", err)
		}
		closeRights(control[:oobn])
		main := 0
		if ready {
			main = n.pid
		}
		message, isReady := translate(buf[:size], main)
		if len(message) > 0 {
			if err := unix.Sendto(n.to, message, unix.MSG_NOSIGNAL, n.address); err != nil {
				return fmt.Errorf("pass a message on to NOTIFY_SOCKET: %w", err)
			}
		}
		if isReady && ready {
			return nil
		}
	}
}

// closeRights closes what came with a message: descriptors to be stored, and the
// one of a barrier, whose closing says that the message has been dealt with.
func closeRights(control []byte) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return
	}
	for i := range messages {
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			for _, fd := range fds {
				unix.Close(fd)
			}
		}
	}
}

// translate keeps the lines that mean outside what they mean inside. When the
// process is ready, main is added as the pid that systemd is to watch, if not 0.
func translate(message []byte, main int) (out []byte, ready bool) {
	for line := range bytes.Lines(message) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		name, value, ok := bytes.Cut(line, []byte("="))
		if !ok {
			continue
		}
		switch string(name) {
		case "READY", "RELOADING", "STOPPING", "STATUS", "ERRNO", "BUSERROR", "EXIT_STATUS", "WATCHDOG", "WATCHDOG_USEC",
			"EXTEND_TIMEOUT_USEC", "MONOTONIC_USEC":
		default:
			continue
		}
		out = append(append(out, line...), '\n')
		if string(name) == "READY" && string(value) == "1" {
			ready = true
			if main != 0 {
				out = append(strconv.AppendInt(append(out, "MAINPID="...), int64(main), 10), '\n')
			}
		}
	}
	return out, ready
}
