package stdio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
	"golang.org/x/sys/unix"
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
	// Memory keeps the streams, if there is a keeper, for the process ExecID of ID.
	Memory *keeper.Memory
	ExecID string
}

// Streams lead pipes to clients, and own these ends of them.
type Streams interface {
	// Await waits for the client to open a stream, as long as ctx allows.
	Await(ctx context.Context, id string) error
	// Output and Input take what begins when the changes have been made and begin is called.
	Output(id string, from *os.File) (changes []keeper.Change, begin func())
	// Input ends with the client, or by Stop.
	Input(id string, to *os.File) (changes []keeper.Change, begin func())
	Stop(id string)
}

// link is a stream that has been awaited, and the end of a pipe that it is to have: see Lead.
type link struct {
	id    string
	pipe  *os.File
	input bool
}

// IO are the streams of one process.
type IO struct {
	config Config
	log    func(string)

	child   engine.Stdio
	logger  *logger
	outputs []*output
	links   []link // until Lead
	// pipes pairs the end of each pipe that is read here with where it leads.
	pipes []pipe

	mu      sync.Mutex // guards what follows, after Started
	stdin   *input
	inPipe  *os.File // writing end of the process's stdin
	console *os.File
	streams []*stream
	input   *stream // what goes to the process
	started bool
	closed  bool
	slot    *keeper.Slot // nil without a keeper
}

// keep notes in the keeper's memory what there is, before anything of it is closed, and makes other
// changes at the same instant. The lock must be held.
func (s *IO) keep(with ...keeper.Change) {
	if s.slot == nil {
		s.config.Memory.Commit(with...)
		return
	}
	t := fds.New()
	m := &wire.KeptStreams{Container: s.config.ID, ExecID: s.config.ExecID, IO: s.Handover(t)}
	s.config.Memory.Holds(t.Max())
	s.config.Memory.Commit(append(with, keeper.Change{Slot: s.slot, Kind: keeper.Streams, Data: wire.Marshal(m)})...)
}

type pipe struct {
	read   *os.File
	to     *output
	stream *stream // from when it is copied
}

// Child is what the process is to get. It belongs to s, until Started.
func (s *IO) Child() engine.Stdio { return s.child }

// Fresh says that no process has the streams yet.
func (s *IO) Fresh() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.started && !s.closed
}

// Started begins to copy: the process has its ends. console is the master of its terminal, if it
// has one, and then belongs to s. In a keeper's memory, other changes are made at the same instant.
func (s *IO) Started(console *os.File, with ...keeper.Change) {
	defer s.closeChild()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.config.Memory.Commit(with...)
		if console != nil {
			console.Close()
		}
		return
	}
	s.console, s.started = console, true
	s.lay(false, false)
	s.keep(with...)
	for _, st := range s.copies() {
		st.run()
	}
}

// Lead has streams over the socket take what they are to have, once the process has its ends and is
// known: what a shim was killed in before that is undone and done again, and finds the streams as
// they were. The next shim does so by Resume.
func (s *IO) Lead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leadOn()
}

func (s *IO) leadOn() {
	if s.started && !s.closed && len(s.links) > 0 {
		changes, begin := s.lead()
		s.keep(changes...)
		begin()
	}
}

// lead has the streams that were awaited take what they are to have.
func (s *IO) lead() (changes []keeper.Change, begin func()) {
	var all []func()
	for _, l := range s.links {
		take := s.config.Streams.Output
		if l.input {
			take = s.config.Streams.Input
		}
		more, one := take(l.id, l.pipe)
		changes, all = append(changes, more...), append(all, one)
	}
	s.links = nil
	return changes, func() {
		for _, one := range all {
			one()
		}
	}
}

// lay makes the copies: the one from the terminal and that of the input unless they have ended.
// Those from pipes that have ended are in pipes no more.
func (s *IO) lay(consoleEnded, inputEnded bool) {
	switch {
	case s.console == nil || consoleEnded:
	case len(s.outputs) > 0:
		s.copyOut(s.outputs[0], s.console, func() {})
	default:
		s.streams = append(s.streams, newStream(nil, s.console, nil, func() {}))
	}
	for i, p := range s.pipes {
		s.copyOut(p.to, p.read, func() { p.read.Close() })
		s.pipes[i].stream = s.streams[len(s.streams)-1]
	}
	if s.stdin != nil && !inputEnded {
		s.copyIn()
	}
}

// copies are all copies, ended or not.
func (s *IO) copies() []*stream {
	if s.input == nil {
		return s.streams
	}
	return append(s.streams[:len(s.streams):len(s.streams)], s.input)
}

func (s *IO) copyOut(to *output, from *os.File, finish func()) {
	failed := func(err error) {
		if !errors.Is(err, os.ErrClosed) {
			s.log(fmt.Sprintf("output of %s is lost: %v", s.config.ID, err))
		}
	}
	var st *stream
	kept := s.slot != nil
	st = newStream(to.file, from, failed, func() {
		if kept {
			s.mu.Lock()
			if !to.over { // else closed meanwhile
				st.over, to.over = true, true
				s.keep(to.dropped())
			}
			s.mu.Unlock()
		}
		finish()
		// The client sees the end of the output.
		to.close()
	})
	st.kept, st.stage = kept, to.stage
	s.streams = append(s.streams, st)
}

// copyIn is not among the streams that are drained: what a process that has
// ended did not read is of no use.
func (s *IO) copyIn() {
	to := s.inPipe
	if s.console != nil {
		to = s.console
	}
	kept := s.slot != nil
	s.input = newStream(to, s.stdin.file, func(error) {}, func() {
		if kept {
			s.mu.Lock()
			s.input.over = true
			s.keep()
			s.mu.Unlock()
		}
		if to == s.inPipe {
			to.Close()
		}
	})
	s.input.kept = kept
}

// CloseStdin lets the process see the end of its input as soon as no client has
// the FIFO open for writing any more. A stream has one client, and ends with that:
// what it has sent on its connection may come after the call on another.
func (s *IO) CloseStdin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stdin != nil && s.stdin.keep != nil {
		keep := s.stdin.keep
		s.stdin.keep = nil
		s.keep()
		keep.Close()
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

// Close closes everything; what has not been copied is lost. A logging program
// has some time to read what is in its pipes, and is not waited for.
func (s *IO) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	// Streams that have nothing to be led to see an end.
	changes, begin := s.lead()
	defer begin()
	if s.stdin != nil && s.stdin.stop != nil {
		s.stdin.stop() // before nothing is known any more of what is to be stopped
	}
	changes = append(changes, keeper.Change{Slot: s.slot})
	for _, o := range s.outputs {
		if !o.over {
			o.over = true
			changes = append(changes, o.dropped())
		}
	}
	s.config.Memory.Commit(changes...)
	s.slot = nil
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
	if s.logger != nil && s.logger.process != nil {
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
