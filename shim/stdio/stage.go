package stdio

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// stage is what output goes through on its way to a file that is appended to, with a keeper: splice
// refuses O_APPEND, so that it has to be read and written, and the shim may be killed between. It
// is moved into a pipe that nothing else is put into, read from there into the keeper's memory, and
// written from there. How far each of these has come, the next shim finds out: how much was read,
// by what is left in the pipe, and how much was written, by the file's offset, which is set to 0
// before and is at the end of what was written after (write(2)).
type stage struct {
	in, out *os.File // of the pipe
	slot    *keeper.Slot
	room    []byte // nil before it is used
	empty   bool   // the pipe is
}

// The room of a stage. Either of before and armed is set while what it is about goes on.
const (
	offBefore  = 0  // uint64: bytes in the pipe before the read
	offTotal   = 8  // uint64: how much is in data
	offDone    = 16 // uint64: of which is written
	offFrom    = 24 // uint64: done before the write
	offSize    = 32 // uint64: the file's before the write
	offArmed   = 40 // uint64: 1 from before a write until done says what has come of it
	offStaged  = 64
	stagedRoom = 16<<10 - offStaged - 64 // four pages, with what package keeper has before it
)

// newStage makes one. It is in the keeper's memory by the change.
func newStage(m *keeper.Memory) (*stage, keeper.Change, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, keeper.Change{}, err
	}
	slot := m.Slot()
	change := keeper.Change{Slot: slot, Kind: keeper.Stage, Data: make([]byte, offStaged+stagedRoom), Room: true}
	return &stage{in: in, out: out, slot: slot, empty: true}, change, nil
}

func (g *stage) close() {
	if g != nil {
		g.in.Close()
		g.out.Close()
	}
}

func (g *stage) handover(t *fds.Table) *wire.HandoverStage {
	if g == nil {
		return nil
	}
	return &wire.HandoverStage{In: t.Number(g.in), Out: t.Number(g.out), Slot: g.slot.Number()}
}

// takeOverStage is the stage that a shim which was killed, or upgraded, has left.
func takeOverStage(h *wire.HandoverStage, m *keeper.Memory, file func(n uint32, what string) *os.File) *stage {
	if h == nil || m == nil {
		return nil
	}
	g := &stage{in: file(h.In, "stage"), out: file(h.Out, "stage"), slot: m.At(h.Slot)}
	if g.in == nil || g.out == nil || g.slot == nil {
		return nil
	}
	return g
}

func (g *stage) word(off int) *uint64 { return sys.LongWord(g.room[off:]) }

// open finds the room and, in it, how far a shim that was killed has come.
func (g *stage) open(file uintptr) (err error) {
	if g.room != nil {
		return nil
	}
	if g.room, err = g.slot.InPlace(); err != nil {
		return err
	}
	if before := g.word(offBefore); *before != 0 {
		left, err := g.inPipe()
		if err != nil {
			return err
		}
		*g.word(offTotal) = *before - uint64(left)
		*before = 0
	}
	*g.word(offDone) = min(*g.word(offDone), *g.word(offTotal))
	if armed := g.word(offArmed); *armed != 0 {
		*g.word(offDone) = *g.word(offFrom) + g.appended(int(file))
		*armed = 0
	}
	return nil
}

// inPipe is how much has yet to be read.
func (g *stage) inPipe() (n int, err error) {
	raw, err := g.out.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }) // FIONREAD
	return n, errors.Join(controlErr, err)
}

// appended is how much came of a write that a shim was killed in: all but in rare cases all or
// nothing, for a signal ends it between two pages.
func (g *stage) appended(file int) uint64 {
	end, err := unix.Seek(file, 0, io.SeekCurrent)
	if err != nil || end == 0 {
		return 0
	}
	rest := g.rest(*g.word(offFrom))
	if n := end - int64(*g.word(offSize)); n > 0 && n <= int64(len(rest)) {
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
func (g *stage) rest(from uint64) []byte { return g.room[offStaged+from : offStaged+*g.word(offTotal)] }

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

// read reads what is in the pipe, or as much of it as there is room for.
func (g *stage) read() (more bool, err error) {
	if g.empty {
		return false, nil
	}
	n, err := g.inPipe()
	if err != nil || n == 0 {
		g.empty = true
		return false, err
	}
	*g.word(offTotal) = 0
	*g.word(offDone) = 0
	*g.word(offBefore) = uint64(n)
	got, err := g.out.Read(g.room[offStaged:])
	*g.word(offTotal) = uint64(got)
	*g.word(offBefore) = 0
	g.empty = got == n
	return got > 0, err
}

// write appends what has been read.
func (g *stage) write(file int) error {
	for {
		from := *g.word(offDone)
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
		*g.word(offFrom), *g.word(offSize) = from, uint64(st.Size)
		*g.word(offArmed) = 1
		n, err := unix.Write(file, rest)
		if err != nil && err != unix.EINTR {
			n = len(rest) // dropped
		}
		*g.word(offDone) = from + uint64(max(n, 0))
		*g.word(offArmed) = 0
		if err != nil && err != unix.EINTR {
			return err
		}
	}
}
