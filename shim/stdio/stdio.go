package stdio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/reaper"
)

const (
	// clientTimeout is how long a client may take to open its end of a FIFO, and a
	// logging program to be ready.
	clientTimeout = 30 * time.Second
	// drainQuiet is how long a reader may stand still, and drainMost how long it
	// may take in all, until the output of a process that has ended is given up.
	// CRI gives a delete ten seconds and would rather have it done.
	drainQuiet = time.Second
	drainMost  = 5 * time.Second
)

// Config says where a process's streams lead.
type Config struct {
	ID, Namespace         string // for logging programs
	Stdin, Stdout, Stderr string
	Terminal              bool
	// UID and GID own the pipes, so that a process that is not root can open
	// /dev/stdout again.
	UID, GID int
	// Streams are those that clients have opened to this shim.
	Streams Streams
}

// Streams lead pipes to clients, and own these ends of them. Both calls wait for
// the client to open the stream, as long as ctx allows.
type Streams interface {
	Output(ctx context.Context, id string, from *os.File) error
	// Input ends with the client, or when stop is called.
	Input(ctx context.Context, id string, to *os.File) (stop func(), err error)
}

// IO are the streams of one process.
type IO struct {
	config Config
	log    func(string)

	child   engine.Stdio
	logger  *logger
	outputs []*output
	// pipes pairs the end of each pipe that is read here with where it leads.
	pipes []pipe

	mu      sync.Mutex // guards what follows, after Started
	stdin   *input
	inPipe  *os.File // writing end of the process's stdin
	console *os.File
	streams []*stream
	closed  bool
}

type pipe struct {
	read *os.File
	to   *output
}

// Open opens what the config names, and waits for the clients of FIFOs.
func Open(ctx context.Context, config Config, r *reaper.Reaper, log func(string)) (_ *IO, err error) {
	s := &IO{config: config, log: log, child: engine.Stdio{Terminal: config.Terminal}}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, clientTimeout)
	defer cancel()
	if config.Stdin != "" {
		if err := s.openStdin(ctx); err != nil {
			return nil, fmt.Errorf("stdin: %w", err)
		}
	}
	if err := s.openOutputs(ctx, r); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *IO) openStdin(ctx context.Context) error {
	in, err := parse(s.config.Stdin)
	switch {
	case err != nil:
		return err
	case in.scheme == schemeStream:
		err = s.openInStream(ctx, in)
	case in.scheme == schemeFIFO:
		s.stdin, err = openInput(in.path)
	default:
		return fmt.Errorf("%q: only output can be of scheme %s", s.config.Stdin, in.scheme)
	}
	if err != nil || s.config.Terminal {
		return err
	}
	s.child.In, s.inPipe, err = os.Pipe()
	if err != nil {
		return err
	}
	return s.own(s.child.In)
}

func (s *IO) openInStream(ctx context.Context, p place) error {
	id, err := p.stream()
	if err != nil {
		return err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	s.stdin = &input{file: read}
	s.stdin.stop, err = s.config.Streams.Input(ctx, id, write)
	return err
}

func (s *IO) openOutStream(ctx context.Context, p place) (*output, error) {
	id, err := p.stream()
	if err != nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if err := s.config.Streams.Output(ctx, id, read); err != nil {
		write.Close()
		return nil, err
	}
	return &output{file: write}, nil
}

// own makes an end of a pipe the process's.
func (s *IO) own(f *os.File) error {
	if err := block(f); err != nil {
		return err
	}
	if s.config.UID == 0 && s.config.GID == 0 {
		return nil
	}
	return f.Chown(s.config.UID, s.config.GID)
}

func (s *IO) openOutputs(ctx context.Context, r *reaper.Reaper) error {
	if s.config.Stdout == "" && s.config.Stderr == "" {
		return nil
	}
	out, err := parse(s.config.Stdout)
	if err != nil {
		return err
	}
	switch out.scheme {
	case schemeBinary, schemeBinaryV2:
		return s.openLogger(ctx, r, out)
	case schemeFile:
		// The one file takes both streams, in the order of their writing.
		return s.openFile(out.path)
	}
	if s.config.Stdout != "" {
		if s.child.Out, err = s.openPipe(ctx, out); err != nil {
			return fmt.Errorf("stdout: %w", err)
		}
	}
	switch {
	case s.config.Terminal, s.config.Stderr == "":
	case s.config.Stderr == s.config.Stdout:
		s.child.Err = s.child.Out
	default:
		errPlace, err := parse(s.config.Stderr)
		if err != nil {
			return err
		}
		if errPlace.scheme != schemeFIFO && errPlace.scheme != schemeStream {
			return fmt.Errorf("stderr %q: only stdout can be of scheme %s, and then takes both", s.config.Stderr, errPlace.scheme)
		}
		if s.child.Err, err = s.openPipe(ctx, errPlace); err != nil {
			return fmt.Errorf("stderr: %w", err)
		}
	}
	return nil
}

// openPipe opens a FIFO or a stream and, unless there is a terminal, makes the
// pipe that leads to it; it gives back the end of that for the process.
func (s *IO) openPipe(ctx context.Context, p place) (file *os.File, err error) {
	var o *output
	if p.scheme == schemeStream {
		o, err = s.openOutStream(ctx, p)
	} else {
		o, err = openOutput(ctx, p.path)
	}
	if err != nil {
		return nil, err
	}
	return s.lead(o)
}

func (s *IO) lead(o *output) (*os.File, error) {
	s.outputs = append(s.outputs, o)
	if s.config.Terminal {
		return nil, nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.pipes = append(s.pipes, pipe{read, o})
	return write, s.own(write)
}

func (s *IO) openFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("stdout: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("stdout: %w", err)
	}
	s.child.Out, err = s.lead(&output{file: f})
	s.child.Err = s.child.Out
	return err
}

func (s *IO) openLogger(ctx context.Context, r *reaper.Reaper, p place) (err error) {
	if s.logger, err = startLogger(ctx, r, p, s.config.ID, s.config.Namespace); err != nil {
		return err
	}
	if s.config.Terminal {
		s.outputs = append(s.outputs, &output{file: s.logger.out})
		s.logger.err.Close()
		return nil
	}
	// The process writes straight into the program's pipes.
	s.child.Out, s.child.Err = s.logger.out, s.logger.err
	if err := s.own(s.child.Out); err != nil {
		return err
	}
	return s.own(s.child.Err)
}

// Child is what the process is to get. It belongs to s, until Started.
func (s *IO) Child() engine.Stdio { return s.child }

// Started begins to copy: the process has its ends. console is the master of
// its terminal, if it has one, and then belongs to s.
func (s *IO) Started(console *os.File) {
	s.closeChild()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		if console != nil {
			console.Close()
		}
		return
	}
	s.console = console
	switch {
	case console != nil && len(s.outputs) > 0:
		s.copyOut(s.outputs[0], console, func() {})
	case console != nil:
		s.streams = append(s.streams, copyStream(nil, console, nil, func() {}))
	}
	for _, p := range s.pipes {
		s.copyOut(p.to, p.read, func() { p.read.Close() })
	}
	if s.stdin != nil {
		s.copyIn()
	}
}

func (s *IO) copyOut(to *output, from *os.File, finish func()) {
	failed := func(err error) {
		if !errors.Is(err, os.ErrClosed) {
			s.log(fmt.Sprintf("output of %s is lost: %v", s.config.ID, err))
		}
	}
	s.streams = append(s.streams, copyStream(to.file, from, failed, func() {
		finish()
		// The client sees the end of the output.
		to.close()
	}))
}

// copyIn is not among the streams that are drained: what a process that has
// ended did not read is of no use.
func (s *IO) copyIn() {
	to := s.inPipe
	if s.console != nil {
		to = s.console
	}
	copyStream(to, s.stdin.file, func(error) {}, func() {
		if to == s.inPipe {
			to.Close()
		}
	})
}

// CloseStdin lets the process see the end of its input as soon as no client has
// the FIFO open for writing any more. A stream has one client, and ends with that:
// what it has sent on its connection may come after the call on another.
func (s *IO) CloseStdin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin != nil && s.stdin.keep != nil {
		s.stdin.keep.Close()
	}
}

// Resize sets the size of the terminal; without one it does nothing.
func (s *IO) Resize(width, height uint32) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.console == nil {
		return nil
	}
	raw, err := s.console.SyscallConn()
	if err != nil {
		return err
	}
	var ioctlErr error
	if err := raw.Control(func(fd uintptr) {
		ioctlErr = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(width), Row: uint16(height)})
	}); err != nil {
		return err
	}
	if ioctlErr != nil {
		return fmt.Errorf("set the size of the terminal: %w", ioctlErr)
	}
	return nil
}

// Drain waits until all that the process has written has reached the client, or
// until the client does not take it. The process must have ended.
func (s *IO) Drain() {
	s.mu.Lock()
	streams := s.streams
	s.mu.Unlock()
	deadline := time.After(drainMost)
	for _, st := range streams {
		if !st.drain(deadline) {
			return
		}
	}
}

func (st *stream) drain(deadline <-chan time.Time) bool {
	for {
		before := st.moved.Load()
		select {
		case <-st.done:
			return true
		case <-deadline:
			return false
		case <-time.After(drainQuiet):
			if st.moved.Load() == before {
				return false
			}
		}
	}
}

// Close closes everything; what has not been copied is lost. A logging program
// has some time to read what is in its pipes, and is not waited for.
func (s *IO) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.closeChild()
	if s.stdin != nil {
		s.stdin.close()
	}
	for _, f := range []*os.File{s.inPipe, s.console} {
		if f != nil {
			f.Close()
		}
	}
	for _, p := range s.pipes {
		p.read.Close()
	}
	for _, o := range s.outputs {
		o.close()
	}
	if s.logger != nil {
		go s.logger.stop(time.After(drainQuiet))
	}
}

// closeChild closes the ends that the process has, here.
func (s *IO) closeChild() {
	for _, f := range []*os.File{s.child.In, s.child.Out, s.child.Err} {
		if f != nil {
			f.Close()
		}
	}
}
