package dbus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrClosed means that the connection is gone, so that it is not known whether
// the call was heard.
var ErrClosed = errors.New("the connection to the bus is closed")

// An Error is the other side's answer that a call failed.
type Error struct {
	Name string
	Body []any
}

func (e *Error) Error() string {
	if len(e.Body) > 0 {
		if text, ok := e.Body[0].(string); ok {
			return text
		}
	}
	return e.Name
}

// A Signal is a message that answers no call.
type Signal struct {
	Path              ObjectPath
	Interface, Member string
	Body              []any
}

// A Handler is told of signals, in their order, and once of the end of the
// connection. What it does holds up all else that comes in.
type Handler interface {
	Signal(*Signal)
	Closed()
}

// A Call is a method call.
type Call struct {
	Destination string
	Path        ObjectPath
	Interface   string
	Member      string
	Signature   Signature
	Args        []any
}

// Conn is a connection. Its methods can be called from several goroutines.
type Conn struct {
	file    *os.File
	in      *bufio.Reader
	handler Handler

	sending sync.Mutex // so that messages do not get mixed

	mu      sync.Mutex
	serial  uint32
	waiting map[uint32]chan *message
	closed  bool
}

// Dial connects to a unix socket, an abstract one where the path begins with @,
// and says who we are.
func Dial(ctx context.Context, path string, handler Handler) (*Conn, error) {
	fd, err := connect(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	file := os.NewFile(uintptr(fd), path)
	c := &Conn{file: file, in: bufio.NewReader(file), handler: handler, waiting: map[uint32]chan *message{}}
	// Not the context's own deadline: the file's could come an instant before, and nothing would
	// say which timeout it was.
	stop := context.AfterFunc(ctx, func() { _ = file.SetDeadline(time.Unix(1, 0)) })
	err = c.handshake()
	if !stop() {
		err = errors.Join(ctx.Err(), err) // which came as a timeout of the file
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	go c.read()
	return c, nil
}

// connect uses a blocking socket: where the backlog is full, as when a hundred
// containers start at once, a non-blocking one fails with EAGAIN and nothing says
// when to try again, but a blocking one waits.
func connect(ctx context.Context, path string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, os.NewSyscallError("socket", err)
	}
	if deadline, ok := ctx.Deadline(); ok {
		tv := unix.NsecToTimeval(max(int64(time.Until(deadline)), int64(time.Millisecond)))
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv); err != nil {
			unix.Close(fd)
			return -1, os.NewSyscallError("setsockopt", err)
		}
	}
	for {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: path})
		if err != unix.EINTR {
			break
		}
	}
	if err == unix.EAGAIN {
		err = context.DeadlineExceeded
	} else if err != nil {
		err = os.NewSyscallError("connect", err)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// handshake sends all of it at once, as systemd's own library does: where its
// private socket reads the end of the handshake and the first message in one go, it
// leaves the message alone until something else comes, which may be never; so
// nothing more goes out until the answer is there. EXTERNAL names no user, so that
// the other side goes by the credentials of the socket: inside a user namespace our
// uid is another than the one that we see.
func (c *Conn) handshake() error {
	if _, err := c.file.WriteString("\x00AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n"); err != nil {
		return fmt.Errorf("say who we are: %w", err)
	}
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("say who we are: %w", err)
		}
		switch word, _, _ := strings.Cut(strings.TrimSpace(string(line)), " "); word {
		case "DATA":
		case "OK":
			return nil
		default:
			return errors.New("say who we are: the answer is " + strings.TrimSpace(string(line)))
		}
	}
}

// read takes in what comes until the connection ends.
func (c *Conn) read() {
	for {
		m, err := readMessage(c.in)
		if err != nil {
			c.Close()
			c.handler.Closed()
			return
		}
		switch m.kind {
		case kindReturn, kindError:
			c.mu.Lock()
			answer := c.waiting[m.reply]
			delete(c.waiting, m.reply)
			c.mu.Unlock()
			if answer != nil {
				answer <- m
			}
		case kindSignal:
			c.handler.Signal(&Signal{m.path, m.iface, m.member, m.body})
		}
	}
}

// A Pending is a call whose answer is to come.
type Pending struct {
	conn   *Conn
	serial uint32
	answer chan *message
}

// Go makes a call and does not wait for the answer.
func (c *Conn) Go(ctx context.Context, call Call) (*Pending, error) {
	p := &Pending{conn: c, answer: make(chan *message, 1)}
	var err error
	p.serial, err = c.send(ctx, call, 0, p.answer)
	return p, err
}

// Wait gives the answer. Giving up does not take the call back.
func (p *Pending) Wait(ctx context.Context) ([]any, error) {
	select {
	case m, ok := <-p.answer:
		switch {
		case !ok:
			return nil, ErrClosed
		case m.kind == kindError:
			return nil, &Error{m.errorName, m.body}
		}
		return m.body, nil
	case <-ctx.Done():
		p.conn.mu.Lock()
		delete(p.conn.waiting, p.serial)
		p.conn.mu.Unlock()
		return nil, ctx.Err()
	}
}

// Call makes a call and waits for its answer.
func (c *Conn) Call(ctx context.Context, call Call) ([]any, error) {
	p, err := c.Go(ctx, call)
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
}

// Tell makes a call without waiting for its answer.
func (c *Conn) Tell(ctx context.Context, call Call) error {
	_, err := c.send(ctx, call, flagNoReply, nil)
	return err
}

func (c *Conn) send(ctx context.Context, call Call, flags byte, answer chan *message) (uint32, error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return 0, ErrClosed
	}
	c.serial++
	serial := c.serial
	if answer != nil {
		c.waiting[serial] = answer
	}
	c.mu.Unlock()
	m := message{kind: kindCall, flags: flags, serial: serial, path: call.Path, iface: call.Interface,
		member: call.Member, dest: call.Destination, signature: call.Signature, body: call.Args}
	text, err := m.encode()
	if err == nil {
		err = c.write(ctx, text)
	}
	if err != nil {
		c.mu.Lock()
		delete(c.waiting, serial)
		c.mu.Unlock()
		return 0, fmt.Errorf("call %s: %w", call.Member, err)
	}
	return serial, nil
}

// write sends a message whole. What is left of half a message would be taken for
// the begin of the next, so the connection is of no use then.
func (c *Conn) write(ctx context.Context, text []byte) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	deadline, _ := ctx.Deadline()
	if err := c.file.SetWriteDeadline(deadline); err != nil {
		return err
	}
	n, err := c.file.Write(text)
	if err != nil && n > 0 {
		c.Close()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return context.DeadlineExceeded // it is the context's, which may learn of it an instant later
	}
	return err
}

// Connected tells whether the connection has not ended yet, as far as is known.
func (c *Conn) Connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed
}

// Close ends the connection. Calls that wait fail with ErrClosed.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	for serial, answer := range c.waiting {
		delete(c.waiting, serial)
		close(answer)
	}
	return c.file.Close()
}
