package harness

import (
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// An FDSocket listens on a unix socket for one descriptor, as conmon listens for a terminal's
// master.
type FDSocket struct {
	Path     string
	box      *Box
	listener *net.UnixListener
}

// Message is what came: the bytes beside the descriptors, and the descriptors, which are the
// receiver's to close.
type Message struct {
	Text string
	FDs  []int
}

// FDSocket makes a socket with the name in the test's directory.
func (b *Box) FDSocket(name string) *FDSocket {
	b.T.Helper()
	s := &FDSocket{Path: b.Path(name), box: b}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.Path, Net: "unix"})
	b.must(err)
	s.listener = l
	b.T.Cleanup(func() { l.Close() })
	return s
}

// Receive takes one connection and what is sent over it first.
func (s *FDSocket) Receive() Message {
	s.box.T.Helper()
	c := s.accept()
	defer c.Close()
	return s.message(c)
}

func (s *FDSocket) accept() *net.UnixConn {
	s.box.T.Helper()
	end := time.Now().Add(Deadline)
	s.box.must(s.listener.SetDeadline(end))
	c, err := s.listener.AcceptUnix()
	s.box.must(err)
	s.box.must(c.SetDeadline(end))
	return c
}

func (s *FDSocket) message(c *net.UnixConn) Message {
	s.box.T.Helper()
	text, control := make([]byte, 1<<16), make([]byte, 1024)
	n, size, _, _, err := c.ReadMsgUnix(text, control)
	s.box.must(err)
	m := Message{Text: string(text[:n])}
	messages, err := unix.ParseSocketControlMessage(control[:size])
	s.box.must(err)
	for _, message := range messages {
		fds, err := unix.ParseUnixRights(&message)
		s.box.must(err)
		m.FDs = append(m.FDs, fds...)
	}
	for _, fd := range m.FDs {
		unix.CloseOnExec(fd)
	}
	return m
}

// ReceiveOne is Receive where exactly one descriptor must come.
func (s *FDSocket) ReceiveOne() (text string, fd int) {
	s.box.T.Helper()
	return s.one(s.Receive())
}

// ReceiveOnly is ReceiveOne where nothing may follow over the connection.
func (s *FDSocket) ReceiveOnly() (text string, fd int) {
	s.box.T.Helper()
	c := s.accept()
	defer c.Close()
	text, fd = s.one(s.message(c))
	if more, err := io.ReadAll(c); err != nil || len(more) > 0 {
		s.box.T.Errorf("behind the message %q came over %s, %v", more, s.Path, err)
	}
	return text, fd
}

// NoMore fails the test where there was another connection than those that were received from.
func (s *FDSocket) NoMore() {
	s.box.T.Helper()
	raw, err := s.listener.SyscallConn()
	s.box.must(err)
	waiting := 0
	s.box.must(raw.Control(func(fd uintptr) {
		waiting, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	}))
	s.box.must(err)
	if waiting > 0 {
		s.box.T.Errorf("there was one more connection to %s", s.Path)
	}
}

func (s *FDSocket) one(m Message) (text string, fd int) {
	s.box.T.Helper()
	if len(m.FDs) != 1 {
		for _, fd := range m.FDs {
			unix.Close(fd)
		}
		s.box.T.Fatalf("%d descriptors came over %s, want 1", len(m.FDs), s.Path)
	}
	return m.Text, m.FDs[0]
}

// ReceiveTerminal is ReceiveOne for a terminal's master.
func (s *FDSocket) ReceiveTerminal() *Terminal {
	s.box.T.Helper()
	_, fd := s.ReceiveOne()
	return s.box.AdoptTerminal(fd)
}
