package stdio

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/staged"
)

const bufferSize = 32 << 10

// buffers are shared by all copies: one that waits for its source holds none.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// stream copies from one descriptor to another until the source ends.
type stream struct {
	dst, src *os.File // no dst is to drop everything
	failed   func(error)
	finish   func()

	moved atomic.Int64  // bytes read
	done  chan struct{} // closed at the end

	rest    []byte // read and not written when it was suspended
	state   atomic.Int32
	stopped chan struct{} // closed when state is stopped

	over bool // it is about to end: under the lock of its IO
	kept bool // nothing is to be in our memory between reading and writing

	stage *stage // on the way to a file that is appended to, if kept
	told  bool   // of the first failure
}

// What a stream's state may be.
const (
	copying int32 = iota
	stopping
	stopped
)

// newStream makes a copy from src to dst. What dst fails to take is dropped, so that the process
// that wrote it goes on; failed is told the first time. finish runs at the end.
func newStream(dst, src *os.File, failed func(error), finish func()) *stream {
	return &stream{dst: dst, src: src, failed: failed, finish: finish, done: make(chan struct{})}
}

// run starts to copy.
func (s *stream) run() {
	s.stopped = make(chan struct{})
	s.state.Store(copying)
	go s.copy(s.stopped)
}

// copy closes its own stopped: by the time that it gets there, resume may have made the next one.
func (s *stream) copy(halted chan struct{}) {
	for !s.state.CompareAndSwap(stopping, stopped) {
		if len(s.rest) > 0 {
			s.put(s.rest)
			continue
		}
		if s.kept && s.dst != nil {
			n, err := s.move()
			if errors.Is(err, os.ErrDeadlineExceeded) {
				continue
			}
			if err != unix.EINVAL {
				if s.moved.Add(n); err != nil || n == 0 {
					if err != nil && err != unix.EIO && s.failed != nil {
						s.failed(err)
					}
					s.finish()
					close(s.done)
					return
				}
				continue
			}
			s.kept = false // a device that cannot be spliced to
		}
		buf, n, err := readAvailable(s.src)
		if n > 0 {
			s.moved.Add(int64(n))
			s.put(buf[:n])
		}
		if buf != nil {
			buffers.Put(buf)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue // which only suspend sets
		}
		if err != nil || n == 0 {
			s.finish()
			close(s.done)
			return
		}
	}
	close(halted)
}

// move moves what there is, such that it is not lost with the shim.
func (s *stream) move() (n int64, err error) {
	if s.stage == nil {
		return staged.Splice(s.dst, s.src)
	}
	if err := s.stage.flush(s.dst); err != nil {
		s.fail(err)
	}
	if n, err = s.stage.Fill(s.src); n == 0 {
		return n, err
	}
	if err := s.stage.flush(s.dst); err != nil {
		s.fail(err)
	}
	return n, nil
}

// put writes what it can until the deadline that suspend sets, and the rest to rest.
func (s *stream) put(b []byte) {
	if s.dst == nil {
		return
	}
	n, err := s.dst.Write(b)
	rest := []byte(nil)
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		rest = append(rest, b[n:]...)
	default: // a disk that was full may have room for the next piece
		s.fail(err)
	}
	s.rest = rest
}

// fail tells of the first failure.
func (s *stream) fail(err error) {
	if !s.told {
		s.told = true
		s.failed(err)
	}
}

// longAgo is a deadline that is over.
var longAgo = time.Unix(1, 0)

// bound sets a deadline. An error says that a file is not polled, and never waits.
func (s *stream) bound(t time.Time) {
	s.src.SetReadDeadline(t)
	if s.dst != nil {
		s.dst.SetWriteDeadline(t)
	}
}

// suspend stops the copy where all that has been read is written, or in rest. It says whether it
// has stopped, or ended, before the limit: a disk may take its time.
func (s *stream) suspend(limit <-chan time.Time) bool {
	s.state.CompareAndSwap(copying, stopping)
	s.bound(longAgo)
	select {
	case <-s.stopped:
	case <-s.done:
	case <-limit:
		return false
	}
	return true
}

// resume has a copy go on that suspend was called for, whether or not that has stopped it.
func (s *stream) resume() {
	s.bound(time.Time{})
	if !s.state.CompareAndSwap(stopping, copying) && s.state.Load() == stopped {
		s.run()
	}
}

func (s *stream) ended() bool {
	if s.over {
		return true
	}
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// readAvailable waits until src has something and reads it into a buffer from
// the pool. At the end of the source n is 0. The master of a terminal says EIO
// when the other side has been closed everywhere, which is an end as well.
func readAvailable(src *os.File) (buf *[bufferSize]byte, n int, err error) {
	raw, err := src.SyscallConn()
	if err != nil {
		return nil, 0, err
	}
	var readErr error
	err = raw.Read(func(fd uintptr) bool {
		buf = buffers.Get().(*[bufferSize]byte)
		for {
			n, readErr = unix.Read(int(fd), buf[:])
			if readErr != unix.EINTR {
				break
			}
		}
		if readErr == unix.EAGAIN {
			buffers.Put(buf)
			buf = nil
			return false
		}
		return true
	})
	if err == nil {
		err = readErr
	}
	return buf, max(n, 0), err
}

// block makes an end of a pipe fit for another process: one made by os.Pipe is
// non-blocking, which few programs expect of their standard streams.
func block(f *os.File) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var setErr error
	if err := raw.Control(func(fd uintptr) { setErr = unix.SetNonblock(int(fd), false) }); err != nil {
		return err
	}
	return setErr
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
