package streaming

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
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
	id   string
	done chan struct{} // closed when its use is over
	end  sync.Once     // is what closes it

	use  use
	pipe *os.File
	rest []byte // has been read, and not been passed on
	last bool   // nothing comes behind rest

	mu     sync.Mutex // guards what follows
	more   sync.Cond
	room   int  // output: what the client takes. Input: what it may send
	closed bool // output: no more will be granted
	gone   bool
	halted bool
}

func newStream(ts *ttrpc.Stream, id string) *stream {
	st := &stream{Stream: ts, id: id, done: make(chan struct{})}
	st.more.L = &st.mu
	return st
}

// begin has a stream serve its use.
func (st *stream) begin() {
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
	st.halted = false
	if st.pipe != nil {
		st.pipe.SetDeadline(time.Time{})
	}
	st.mu.Unlock()
	if !st.isOver() {
		st.begin()
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
		st.pipe.Close()
		st.Close(io.EOF) // for listen
		close(st.done)
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
		if len(st.rest) == 0 && !st.last {
			buf := make([]byte, piece)
			n, err := st.pipe.Read(buf)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				st.stopped()
				return
			}
			st.rest, st.last = buf[:n], err != nil
		}
		for len(st.rest) > 0 {
			room, halted := st.wait()
			if halted {
				return
			}
			part := st.rest[:min(room, len(st.rest))]
			if len(part) == 0 || st.send(wire.DataURL, &wire.Data{Data: part}) != nil {
				st.over() // the client is gone
				return
			}
			st.used(len(part))
			st.rest = st.rest[len(part):]
		}
		if st.last {
			st.over()
			return
		}
	}
}

// takeIn leads the client to the pipe.
func (st *stream) takeIn() {
	for {
		if len(st.rest) == 0 {
			if st.room < window {
				// Of a client that is gone there may still be messages, behind which Recv
				// tells of the end.
				_ = st.send(wire.WindowUpdateURL, &wire.WindowUpdate{Update: window})
				st.room += window
			}
			var any wire.Any
			var data wire.Data
			err := st.Recv(&any)
			if errors.Is(err, ttrpc.ErrSuspended) {
				return
			}
			if err != nil || any.TypeURL != wire.DataURL || wire.Unmarshal(any.Value, &data) != nil {
				st.over()
				return
			}
			st.rest = data.Data
		}
		n, err := st.pipe.Write(st.rest)
		st.room -= n
		st.rest = st.rest[n:]
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		if err != nil {
			st.over()
			return
		}
	}
}

func (st *stream) send(url string, m wire.Message) error {
	return st.Send(&wire.Any{TypeURL: url, Value: wire.Marshal(m)})
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
		st.mu.Lock()
		st.room += max(int(update.Update), 0)
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
	for st.room == 0 && !st.closed && !st.gone && !st.halted {
		st.more.Wait()
	}
	if st.gone {
		return 0, false
	}
	if st.halted {
		return 0, true
	}
	return st.room, false
}

func (st *stream) used(n int) {
	st.mu.Lock()
	st.room -= n
	st.mu.Unlock()
}
