package staged

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/shim/internal/fds"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/keeper"
)

// Pipe is a pipe that nothing else uses, and a room in the keeper's memory that it is read into, or
// written from. It is used in one direction, by one goroutine.
type Pipe struct {
	in, out *os.File
	slot    *keeper.Slot
	room    []byte // nil before it is used
	empty   bool   // the pipe that is read from is
	held    int    // bytes in the pipe that is written into
}

// The room: numbers of eight bytes, of which some are the user's, and the data.
const (
	offBefore = 0 // bytes in the pipe before a read, while that goes on
	offTotal  = 8 // how much is in data
	// Own is where the user's numbers are.
	Own     = 16
	offData = 64
	// dataRoom is how much data a room has place for at first: four pages, with what package keeper
	// has before it.
	dataRoom = 16<<10 - offData - 64

	// Of a pipe that is written into, Own has these.
	offDone  = Own      // of data, in the pipe, or through it
	offFrom  = Own + 8  // done before the write
	offArmed = Own + 16 // 1 from before a write until done says what has come of it
)

// New makes a pipe. Its room is in the keeper's memory by the change.
func New(m *keeper.Memory) (*Pipe, keeper.Change, error) {
	out, in, err := os.Pipe()
	if err != nil {
		return nil, keeper.Change{}, err
	}
	slot := m.Slot()
	return &Pipe{in: in, out: out, slot: slot, empty: true}, change(slot, make([]byte, offData+dataRoom)), nil
}

func change(slot *keeper.Slot, room []byte) keeper.Change {
	return keeper.Change{Slot: slot, Kind: keeper.Stage, Data: room, Room: true}
}

// Close closes the pipe, and leaves the room.
func (g *Pipe) Close() {
	if g != nil {
		g.in.Close()
		g.out.Close()
	}
}

// Slot is where the room is.
func (g *Pipe) Slot() *keeper.Slot {
	if g == nil {
		return nil
	}
	return g.slot
}

// Handover writes it down.
func (g *Pipe) Handover(t *fds.Table) *wire.HandoverStage {
	if g == nil {
		return nil
	}
	return &wire.HandoverStage{In: t.Number(g.in), Out: t.Number(g.out), Slot: g.slot.Number()}
}

// TakeOver is the pipe that a shim which was killed, or upgraded, has left, nil of none.
func TakeOver(h *wire.HandoverStage, m *keeper.Memory, file func(n uint32, what string) *os.File) *Pipe {
	if h == nil || m == nil {
		return nil
	}
	g := &Pipe{in: file(h.In, "stage"), out: file(h.Out, "stage"), slot: m.At(h.Slot)}
	if g.in == nil || g.out == nil || g.slot == nil {
		return nil
	}
	return g
}

// Word is a number in the room.
func (g *Pipe) Word(off int) *uint64 { return sys.LongWord(g.room[off:]) }

// Data is what was read and has not been cleared, or what is written.
func (g *Pipe) Data() []byte { return g.room[offData : offData+*g.Word(offTotal)] }

// Clear has no data be there. The room must be open.
func (g *Pipe) Clear() { *g.Word(offTotal) = 0 }

// Open finds the room and, in it, how far a read has come that a shim was killed in. fresh is false
// if it had been opened before.
func (g *Pipe) Open() (fresh bool, err error) {
	if g.room != nil {
		return false, nil
	}
	room, err := g.slot.InPlace()
	if err != nil {
		return false, err
	}
	g.room = room
	if before := g.Word(offBefore); *before != 0 {
		left, err := g.left()
		if err != nil {
			return false, err
		}
		*g.Word(offTotal) = *before - uint64(left)
		*before = 0
	}
	return true, nil
}

// left is how much is in the pipe.
func (g *Pipe) left() (n int, err error) {
	raw, err := g.out.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }) // FIONREAD
	return n, errors.Join(controlErr, err)
}

// Fill moves what a source has into the pipe.
func (g *Pipe) Fill(src *os.File) (n int64, err error) {
	if n, err = Splice(g.in, src); n > 0 {
		g.empty = false
	}
	return n, err
}

// Read reads what is in the pipe, or as much of it as there is room for, into the room, where there
// must be no data.
func (g *Pipe) Read() (more bool, err error) {
	if g.empty {
		return false, nil
	}
	n, err := g.left()
	if err != nil || n == 0 {
		g.empty = true
		return false, err
	}
	*g.Word(offBefore) = uint64(n)
	got, err := g.out.Read(g.room[offData:])
	*g.Word(offTotal) = uint64(max(got, 0))
	*g.Word(offBefore) = 0
	g.empty = got == n
	return got > 0, err
}

// Load has other data to be written: from the change on, which is to be made next. What there was
// must have been written.
func (g *Pipe) Load(data []byte) keeper.Change {
	g.room = nil
	room := make([]byte, offData+max(len(data), 1))
	*sys.LongWord(room[offTotal:]) = uint64(len(data))
	copy(room[offData:], data)
	return change(g.slot, room)
}

// Flush writes all data, and what is in the pipe of it, to a pipe. It waits for that.
func (g *Pipe) Flush(dst *os.File) error {
	if err := g.recover(); err != nil {
		return err
	}
	for {
		for g.held > 0 {
			n, err := Splice(dst, g.out)
			if err != nil {
				return err
			}
			g.held -= int(n)
		}
		done := *g.Word(offDone)
		rest := g.Data()[done:]
		if len(rest) == 0 {
			return nil
		}
		*g.Word(offFrom) = done
		*g.Word(offArmed) = 1
		n, err := g.write(rest)
		*g.Word(offDone) = done + uint64(n)
		*g.Word(offArmed) = 0
		g.held = n
		if err != nil {
			return err
		}
	}
}

// write writes to the pipe, which is empty, as much as it takes.
func (g *Pipe) write(b []byte) (n int, err error) {
	raw, err := g.in.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		for {
			if n, err = unix.Write(int(fd), b[:min(len(b), most)]); err != unix.EINTR {
				return
			}
		}
	})
	return max(n, 0), errors.Join(controlErr, err)
}

// recover finds the room and, in it, how far a write has come that a shim was killed in: the pipe
// was empty before it.
func (g *Pipe) recover() error {
	fresh, err := g.Open()
	if err != nil || !fresh {
		return err
	}
	if g.held, err = g.left(); err != nil {
		return err
	}
	if armed := g.Word(offArmed); *armed != 0 {
		*g.Word(offDone) = *g.Word(offFrom) + uint64(g.held)
		*armed = 0
	}
	return nil
}
