package stdio

import (
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const bufferSize = 32 << 10

// buffers are shared by all copies: one that waits for its source holds none.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// stream copies from one descriptor to another until the source ends.
type stream struct {
	moved atomic.Int64  // bytes read
	done  chan struct{} // closed at the end
}

// copyStream starts to copy from src to dst, which may be nil to drop
// everything. What dst fails to take is dropped, so that the process that wrote
// it goes on; failed is told the first time. finish runs at the end.
func copyStream(dst io.Writer, src *os.File, failed func(error), finish func()) *stream {
	s := &stream{done: make(chan struct{})}
	go func() {
		defer close(s.done)
		defer finish()
		told := false
		for {
			buf, n, err := readAvailable(src)
			if n > 0 {
				s.moved.Add(int64(n))
				if dst != nil {
					// A disk that was full may have room for the next piece.
					if _, err := dst.Write(buf[:n]); err != nil && !told {
						failed(err)
						told = true
					}
				}
			}
			if buf != nil {
				buffers.Put(buf)
			}
			if err != nil || n == 0 {
				return
			}
		}
	}()
	return s
}

// readAvailable waits until src has something and reads it into a buffer from
// the pool. At the end of the source n is 0. The master of a terminal says EIO
// when nobody has the other side open any more, which is an end as well.
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
