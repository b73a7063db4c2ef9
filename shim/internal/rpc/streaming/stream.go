package streaming

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/internal/staged"
	"github.com/berth-runtime/berth/shim/keeper"
)

const (
	// piece is the most that one message carries, and window how much a client may
	// send before it hears from us: the sizes that containerd has.
	piece  = 32 << 10
	window = 2 * piece
)

// use is what a stream is used for.
type use uint32

const (
	waiting use = iota
	output
	input
)

// stream is one that waits to be used, or is. What serves it returns when it is halted, at a point
// that these fields describe.
type stream struct {
	*ttrpc.Stream
	id       string
	answered bool          // its client has been told that it is there
	awaited  bool          // it is kept for one that will use it
	done     chan struct{} // closed when its use is over
	end      sync.Once     // is what closes it

	use  use
	pipe *os.File
	rest []byte // has been read, and not been passed on
	last bool   // nothing comes behind rest

	// With a keeper, rest is not used: what has been read is in the stage, and slot is where the
	// use is kept. Both are nil otherwise.
	stage  *staged.Pipe
	staged keeper.Change // by which the stage is kept
	slot   *keeper.Slot

	mu   sync.Mutex // guards what follows
	more sync.Cond
	// Of data, or what is granted of it: what the client has sent, and what it was sent.
	heard, told uint64
	closed      bool // output: no more will be granted
	gone        bool
	halted      bool
	begun       bool
}

func newStream(ts *ttrpc.Stream, id string) *stream {
	st := &stream{Stream: ts, id: id, done: make(chan struct{})}
	st.more.L = &st.mu
	return st
}

// begin has a stream serve its use, or if it is halted, from goOn on.
func (st *stream) begin() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.begun = true
	if !st.halted || st.gone {
		st.run()
	}
}

func (st *stream) run() {
	switch st.use {
	case output:
		st.Go(st.listen)
		st.Go(st.putOut)
	case input:
		st.Go(st.takeIn)
	}
}

// longAgo is a deadline that is over.
var longAgo = time.Unix(1, 0)

// halt has what serves the stream return.
func (st *stream) halt() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.halted = true
	if st.pipe != nil {
		st.pipe.SetDeadline(longAgo)
	}
	st.more.Broadcast()
}

// goOn is what follows on halt.
func (st *stream) goOn() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.halted = false
	if st.pipe != nil {
		st.pipe.SetDeadline(time.Time{})
	}
	if st.begun && !st.isOver() {
		st.run()
	}
}

func (st *stream) isOver() bool {
	select {
	case <-st.done:
		return true
	default:
		return false
	}
}

// over ends the use.
func (st *stream) over() {
	st.end.Do(func() {
		// Before the descriptors may be other files'.
		st.Memory().Commit(st.kept(true))
		close(st.done)
		st.pipe.Close()
		st.stage.Close()
		st.Close(io.EOF) // for listen
	})
}

// abandon ends the use of an output whose client is gone.
func (st *stream) abandon() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.gone = true
	st.pipe.SetDeadline(longAgo)
	st.more.Broadcast()
}

// stopped is what comes of a pipe that a deadline has ended the wait for.
func (st *stream) stopped() {
	st.mu.Lock()
	gone := st.gone
	st.mu.Unlock()
	if gone {
		st.over()
	}
}

// putOut leads the pipe to the client.
func (st *stream) putOut() {
	for {
		// Read before there is room, as the end of the output needs none.
		rest, err := st.read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			st.stopped()
			return
		}
		if len(rest) == 0 { // the end
			st.over()
			return
		}
		room, halted := st.wait()
		if halted {
			return
		}
		part := rest[:min(room, len(rest))]
		if len(part) == 0 || st.sendData(part) != nil {
			st.over() // the client is gone
			return
		}
	}
}

// read gives what has been read of an output and not been sent; nothing is the end, or an error.
func (st *stream) read() ([]byte, error) {
	if st.stage != nil {
		return st.readStage()
	}
	if len(st.rest) == 0 && !st.last {
		buf := make([]byte, piece)
		n, err := st.pipe.Read(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, err
		}
		st.rest, st.last = buf[:n], err != nil
	}
	return st.rest, nil
}

// sendData sends of what read has given.
func (st *stream) sendData(part []byte) error {
	n := len(part)
	st.mu.Lock()
	st.told += uint64(n)
	st.mu.Unlock()
	if err := st.send(wire.DataURL, &wire.Data{Data: part}); err != nil {
		return err
	}
	if st.stage == nil {
		st.rest = st.rest[n:]
	}
	return nil
}

// takeIn leads the client to the pipe.
func (st *stream) takeIn() {
	for {
		err := st.write()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			st.over()
			return
		}
		if int64(st.told-st.heard) < window {
			// Of a client that is gone there may still be messages, behind which Recv tells of
			// the end.
			st.told += window
			_ = st.send(wire.WindowUpdateURL, &wire.WindowUpdate{Update: window})
		}
		var any wire.Any
		var data wire.Data
		err = st.Recv(&any)
		if errors.Is(err, ttrpc.ErrSuspended) {
			return
		}
		if err != nil || any.TypeURL != wire.DataURL || wire.Unmarshal(any.Value, &data) != nil {
			st.over()
			return
		}
		st.heard += uint64(len(data.Data))
		if st.stage == nil {
			st.rest = data.Data
			st.Keep(nil)
		} else {
			st.Keep(st.state(st.heard), st.stage.Load(data.Data))
		}
	}
}

// write writes what has come to an input, or tells why not.
func (st *stream) write() error {
	if st.stage != nil {
		return st.stage.Flush(st.pipe)
	}
	if len(st.rest) == 0 {
		return nil
	}
	n, err := st.pipe.Write(st.rest)
	st.rest = st.rest[n:]
	return err
}

// send sends a message, and what was told is kept at the same instant.
func (st *stream) send(url string, m wire.Message) error {
	return st.Send(&wire.Any{TypeURL: url, Value: wire.Marshal(m)}, st.kept(false))
}

// listen hears what the client of an output grants.
func (st *stream) listen() {
	for {
		var any wire.Any
		var update wire.WindowUpdate
		err := st.Recv(&any)
		if errors.Is(err, ttrpc.ErrSuspended) {
			return
		}
		if err == nil && any.TypeURL == wire.WindowUpdateURL {
			err = wire.Unmarshal(any.Value, &update)
		}
		granted := uint64(max(update.Update, 0))
		st.Keep(st.state(st.heard + granted))
		st.mu.Lock()
		st.heard += granted
		// A client that has closed its side takes what it has granted, and no more.
		st.closed = errors.Is(err, io.EOF)
		st.gone = err != nil && !st.closed
		st.more.Broadcast()
		st.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// wait gives the room that there is, as soon as there is any; 0 when there will
// be none.
func (st *stream) wait() (room int, halted bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for st.room() == 0 && !st.closed && !st.gone && !st.halted {
		st.more.Wait()
	}
	if st.gone {
		return 0, false
	}
	if st.halted {
		return 0, true
	}
	return st.room(), false
}

// room is how much the client of an output takes in a message. What it had granted is not known
// again yet when the shim before was killed in between.
func (st *stream) room() int { return int(max(min(int64(st.heard-st.told), piece), 0)) }
