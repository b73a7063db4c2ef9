package stdio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/internal/staged"
	"github.com/berth-runtime/berth/shim/keeper"
)

// stage is what output goes through on its way to a file that is appended to, with a keeper: splice
// refuses O_APPEND, so that it has to be read and written, and the shim may be killed between. It
// is read into the keeper's memory, and written from there. How much was written, the next shim
// finds out by the file's offset, which is set to 0 before and is at the end of what was written
// after (write(2)).
type stage struct{ *staged.Pipe }

// The room of a stage. Armed is set while what it is about goes on.
const (
	offDone  = staged.Own      // how much of the data is written
	offFrom  = staged.Own + 8  // done before the write
	offSize  = staged.Own + 16 // the file's before the write
	offArmed = staged.Own + 24 // 1 from before a write until done says what has come of it
)

// newStage makes one. It is in the keeper's memory by the change.
func newStage(m *keeper.Memory) (*stage, keeper.Change, error) {
	pipe, change, err := staged.New(m)
	if err != nil {
		return nil, change, err
	}
	return &stage{pipe}, change, nil
}

func (g *stage) close() {
	if g != nil {
		g.Close()
	}
}

func (g *stage) handover(t *fds.Table) *wire.HandoverStage {
	if g == nil {
		return nil
	}
	return g.Handover(t)
}

// takeOverStage is the stage that a shim which was killed, or upgraded, has left.
func takeOverStage(h *wire.HandoverStage, m *keeper.Memory, file func(n uint32, what string) *os.File) *stage {
	if pipe := staged.TakeOver(h, m, file); pipe != nil {
		return &stage{pipe}
	}
	return nil
}

// open finds the room and, in it, how far a shim that was killed has come.
func (g *stage) open(file uintptr) error {
	fresh, err := g.Open()
	if err != nil || !fresh {
		return err
	}
	*g.Word(offDone) = min(*g.Word(offDone), uint64(len(g.Data())))
	if armed := g.Word(offArmed); *armed != 0 {
		*g.Word(offDone) = *g.Word(offFrom) + g.appended(int(file))
		*armed = 0
	}
	return nil
}

// appended is how much came of a write that a shim was killed in: all but in rare cases all or
// nothing, for a signal ends it between two pages.
func (g *stage) appended(file int) uint64 {
	end, err := unix.Seek(file, 0, io.SeekCurrent)
	if err != nil || end == 0 {
		return 0
	}
	rest := g.rest(*g.Word(offFrom))
	if n := end - int64(*g.Word(offSize)); n > 0 && n <= int64(len(rest)) {
		return uint64(n)
	}
	// The file was truncated meanwhile, or has other writers, too.
	f, err := os.Open("/proc/self/fd/" + strconv.Itoa(file))
	if err != nil {
		return uint64(len(rest))
	}
	defer f.Close()
	written := make([]byte, min(int64(len(rest)), end))
	if _, err := f.ReadAt(written, end-int64(len(written))); err != nil {
		return uint64(len(rest))
	}
	for n := len(written); n > 0; n-- {
		if bytes.Equal(written[len(written)-n:], rest[:n]) {
			return uint64(n)
		}
	}
	return uint64(len(rest))
}

// rest is what has been read, from an offset on.
func (g *stage) rest(from uint64) []byte { return g.Data()[from:] }

// flush appends all that there is to the file. What the file does not take is dropped, with an
// error.
func (g *stage) flush(file *os.File) (err error) {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	controlErr := raw.Control(func(fd uintptr) {
		if err = g.open(fd); err != nil {
			return
		}
		for {
			err = errors.Join(err, g.write(int(fd)))
			more, readErr := g.read()
			if err = errors.Join(err, readErr); !more {
				return
			}
		}
	})
	return errors.Join(controlErr, err)
}

// read reads more, where all has been written.
func (g *stage) read() (more bool, err error) {
	g.Clear()
	*g.Word(offDone) = 0
	return g.Read()
}

// write appends what has been read.
func (g *stage) write(file int) error {
	for {
		from := *g.Word(offDone)
		rest := g.rest(from)
		if len(rest) == 0 {
			return nil
		}
		var st unix.Stat_t
		err := unix.Fstat(file, &st)
		if err == nil {
			_, err = unix.Seek(file, 0, io.SeekStart)
		}
		if err != nil {
			return err
		}
		*g.Word(offFrom), *g.Word(offSize) = from, uint64(st.Size)
		*g.Word(offArmed) = 1
		n, err := unix.Write(file, rest)
		if err != nil && err != unix.EINTR {
			n = len(rest) // dropped
		}
		*g.Word(offDone) = from + uint64(max(n, 0))
		*g.Word(offArmed) = 0
		if err != nil && err != unix.EINTR {
			return err
		}
	}
}
