package program_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	. "github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/engine/program/refinterp"
)

// The real interpreter and the one in Go have to agree: on what the calls
// return, on the cells, on where expected errnos lead, and on the failure.
//
// Both get the same files at the same descriptors, from playFD on, where neither
// a Go program nor an emulator has others.
const (
	playFD     = 200
	playFDs    = 6
	fdCells    = 3 // the first cells hold descriptors of the playground only,
	sizeCells  = 2 // the next ones sizes that fit the buffer
	safeCells  = fdCells + sizeCells
	stateCells = 16
	stateLen   = 8*stateCells + 64 // cells, then a buffer to read into
)

// A hostKernel makes the calls of the reference interpreter in this process.
type hostKernel struct{}

func (hostKernel) Call(nr uint32, args [6]uint64, mem *refinterp.Memory) (int64, bool) {
	var a [6]uintptr
	for i, v := range args {
		a[i] = uintptr(v)
		if b, ok := mem.Bytes(v, 1); ok {
			a[i] = uintptr(unsafe.Pointer(&b[0]))
		}
	}
	if nr == unix.SYS_EXIT_GROUP {
		return 0, true
	}
	r, _, errno := unix.RawSyscall6(uintptr(nr), a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return -int64(errno), false
	}
	return int64(r), false
}

// A playground is the files of one run.
type playground struct {
	content *os.File // read and written
	empty   *os.File // the end of a pipe that has nothing to read
	state   *os.File // gets the state at the end
}

func newPlayground(t *testing.T) playground {
	t.Helper()
	r, _ := pipe(t)
	return playground{memfd(t, "0123456789abcdef0123456789"), r, memfd(t, "")}
}

func (g playground) files() []*os.File { return []*os.File{g.content, g.empty, g.state} }

// A outcome is what can be seen of a run.
type outcome struct {
	failure Failure
	state   string
	content string
}

func (g playground) outcome(t *testing.T, f Failure) outcome {
	t.Helper()
	read := func(f *os.File) string {
		var b bytes.Buffer
		if _, err := io.Copy(&b, io.NewSectionReader(f, 0, 1<<20)); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	return outcome{f, read(g.state), read(g.content)}
}

// playProgram is a Program that begins by placing the files of its playground
// and ends by writing its state out. Everything between is up to ops.
func playProgram(t *testing.T, ops func(b *Builder, state Addr)) *Program {
	t.Helper()
	b := NewBuilder()
	state := b.Zeroed(stateLen)
	for i := range playground.files(playground{}) {
		b.Call(unix.SYS_DUP3, Int(int64(firstFD+i)), Int(int64(playFD+i)), Imm(0))
	}
	b.Call(unix.SYS_DUP3, Int(playFD+2), Int(playFD+playFDs), Imm(0)) // where ops find no way to close it
	b.Call(unix.SYS_LSEEK, Int(playFD), Int(0), Int(0))
	// Here and not in the parent, where os.File makes a descriptor block again.
	b.Call(unix.SYS_FCNTL, Int(playFD+1), Int(unix.F_SETFL), Imm(unix.O_NONBLOCK))
	ops(b, state)
	b.Call(unix.SYS_PWRITE64, Int(playFD+playFDs), state.Arg(), Int(stateLen), Int(0))
	return build(t, b)
}

// runBoth returns the outcomes of the two interpreters.
func runBoth(t *testing.T, p *Program) (real, reference outcome) {
	t.Helper()
	g := newPlayground(t)
	c := start(t, p, startOptions{extraFiles: g.files()})
	f, _ := c.failure()
	c.closeReport()
	c.status()
	real = g.outcome(t, f)

	g = newPlayground(t)
	defer unix.CloseRange(playFD, playFD+playFDs+64, 0)
	k := placing{files: g.files()}
	r, err := refinterp.Run(p.Segment(), &k)
	if err != nil {
		t.Fatalf("%v\n%s", err, p)
	}
	if r.Failure != nil {
		f = *r.Failure
	} else {
		f = Failure{}
	}
	return real, g.outcome(t, f)
}

// placing is the hostKernel for a Program of playProgram: in this process the
// files of the playground are not at firstFD.
type placing struct {
	hostKernel
	files []*os.File
	calls int
}

func (k *placing) Call(nr uint32, args [6]uint64, mem *refinterp.Memory) (int64, bool) {
	if k.calls < len(k.files) {
		args[0] = uint64(k.files[k.calls].Fd())
	}
	k.calls++
	if (nr == unix.SYS_SENDTO || nr == unix.SYS_READ) && args[0] == reportFD {
		return -int64(unix.EBADF), false // the report: this process's descriptor 3 is something else
	}
	return k.hostKernel.Call(nr, args, mem)
}

func TestInterpretersAgree(t *testing.T) {
	hand := map[string]func(b *Builder, state Addr){
		"nothing": func(b *Builder, state Addr) {},
		"results": func(b *Builder, state Addr) {
			b.Call(unix.SYS_GETUID).IntoAddr(state)
			b.Call(unix.SYS_FCNTL, Int(playFD), Int(unix.F_DUPFD), Int(playFD)).IntoAddr(state.Plus(8))
			b.Call(unix.SYS_READ, state.Plus(8).Cell().Value(), state.Plus(8*stateCells).Arg(), Int(5)).IntoAddr(state.Plus(17))
		},
		"expected": func(b *Builder, state Addr) {
			l := b.NewLabel()
			b.Call(unix.SYS_READ, Int(playFD+1), state.Arg(), Int(1)).Expect(l, unix.EIO, unix.EAGAIN).IntoAddr(state)
			b.Set(state.Cell(), Int(1))
			b.Place(l)
			b.Set(state.Plus(8).Cell(), Int(2))
		},
		"unexpected":                func(b *Builder, state Addr) { b.Call(unix.SYS_CLOSE, Int(9999)) },
		"retry, then another errno": func(b *Builder, state Addr) { b.Call(unix.SYS_LSEEK, Int(9999), Int(0), Int(0)).Retry() },
		"retry until the fuel ends": func(b *Builder, state Addr) {
			b.SetFuel(5)
			b.Call(unix.SYS_READ, Int(playFD+1), state.Arg(), Int(1)).Retry()
		},
		"zero fails":  func(b *Builder, state Addr) { b.Call(unix.SYS_LSEEK, Int(playFD), Int(0), Int(0)).ZeroFails() },
		"set errno":   func(b *Builder, state Addr) { b.Set(state.Cell(), Int(-int64(unix.EDOM))) },
		"set 64 bits": func(b *Builder, state Addr) { b.Set(state.Cell(), Int(-4096)) },
		"retry": func(b *Builder, state Addr) {
			b.SetFuel(5)
			b.Call(unix.SYS_READ, Int(playFD), state.Arg(), Int(4)).Retry().IntoAddr(state)
			b.Call(unix.SYS_READ, Int(playFD+1), state.Arg(), Int(4)).Retry()
		},
		"retry before expecting": func(b *Builder, state Addr) {
			b.SetFuel(5)
			l := b.NewLabel()
			b.Call(unix.SYS_READ, Int(playFD+1), state.Arg(), Int(4)).Retry().Expect(l, unix.EAGAIN)
			b.Place(l)
		},
		"keep errno": func(b *Builder, state Addr) {
			l := b.NewLabel()
			b.Call(unix.SYS_CLOSE, Int(9999)).IntoAddr(state).KeepErrno().ExpectAny(l)
			b.Place(l)
			b.Call(unix.SYS_GETUID).IntoAddr(state.Plus(8)).KeepErrno()
			b.Set(state.Plus(16).Cell(), state.Cell().Value())
		},
		"fuel": func(b *Builder, state Addr) {
			b.SetFuel(5)
			l := b.NewLabel()
			b.Place(l)
			b.Call(unix.SYS_LSEEK, Int(playFD), Int(1), Int(1)).IntoAddr(state)
			b.Jump(l)
		},
		"label at the end": func(b *Builder, state Addr) {
			l := b.NewLabel()
			b.Call(unix.SYS_CLOSE, Int(9999)).ExpectAny(l)
			b.Set(state.Cell(), Int(1))
			b.Place(l)
		},
	}
	for name, ops := range hand {
		t.Run(name, func(t *testing.T) { agree(t, playProgram(t, ops)) })
	}

	runs := uint64(300)
	if testing.Short() || runner != "" {
		runs = 60
	}
	ended := map[string]int{}
	for seed := range runs {
		r := rand.New(rand.NewPCG(seed, 0))
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			f := agree(t, playProgram(t, func(b *Builder, state Addr) { randomOps(r, b, state) }))
			switch {
			case f == Failure{}:
				ended["end"]++
			case f.Errno == unix.ELOOP:
				ended["fuel"]++
			default:
				ended["failure"]++
			}
		})
	}
	// Without enough of each the random Programs show nothing.
	for _, how := range []string{"end", "fuel", "failure"} {
		if ended[how] < int(runs)/20 {
			t.Errorf("of the random programs only %d ended by %s: %v", ended[how], how, ended)
		}
	}
	t.Log(ended)
}

func agree(t *testing.T, p *Program) Failure {
	t.Helper()
	real, reference := runBoth(t, p)
	if real != reference {
		t.Errorf("real      %+q\nreference %+q\n%s", fmt.Sprint(real), fmt.Sprint(reference), p)
	}
	return real.failure
}

// randomOps adds harmless calls whose results depend on nothing but the
// playground.
func randomOps(r *rand.Rand, b *Builder, state Addr) {
	b.SetFuel(uint32(r.IntN(24)))
	for i := range fdCells {
		b.Set(state.Plus(8*i).Cell(), Int(playFD))
	}
	fdCell := func() Cell { return state.Plus(8 * r.IntN(fdCells)).Cell() }
	sizeCell := func() Cell { return state.Plus(8 * (fdCells + r.IntN(sizeCells))).Cell() }
	cell := func() Cell { return state.Plus(8 * (safeCells + r.IntN(stateCells-safeCells))).Cell() }
	buffer := state.Plus(8 * stateCells)
	number := func(n int64) Arg { // a number, at times by way of a cell
		if r.IntN(3) > 0 {
			return Int(n)
		}
		c := cell()
		b.Set(c, Int(n))
		return c.Value()
	}
	// Neither a descriptor nor a size is ever taken from a cell that other
	// results go to: the reference's calls are made by this very process.
	playNumber := func() Arg {
		if r.IntN(8) == 0 {
			return Int(9999)
		}
		return Int(playFD + r.Int64N(playFDs))
	}
	fd := func() Arg {
		if r.IntN(3) == 0 {
			return fdCell().Value()
		}
		return playNumber()
	}
	size := func() Arg {
		if r.IntN(3) == 0 {
			return sizeCell().Value()
		}
		return Int(r.Int64N(64))
	}

	ops := 1 + r.IntN(40)
	labels := make([]Label, 1+r.IntN(6))
	placeAt := map[int][]Label{}
	for i := range labels {
		labels[i] = b.NewLabel()
		at := r.IntN(ops + 1)
		placeAt[at] = append(placeAt[at], labels[i])
	}
	for i := range ops + 1 {
		for _, l := range placeAt[i] {
			b.Place(l)
		}
		if i == ops {
			break
		}
		var o *Op
		kind := r.IntN(13)
		switch kind {
		case 0:
			o = b.Set(fdCell(), playNumber())
		case 1:
			o = b.Set(sizeCell(), Int(r.Int64N(64)))
		case 2:
			o = b.Call(unix.SYS_FCNTL, fd(), Int(unix.F_DUPFD), Int(playFD)).Into(fdCell())
		case 12:
			o = b.Call(unix.SYS_DUP3, fd(), Int(playFD+r.Int64N(playFDs)), number(r.Int64N(2)))
		case 3:
			o = b.Call(unix.SYS_CLOSE, Int(playFD+r.Int64N(playFDs)))
		case 4:
			o = b.Call(unix.SYS_FCNTL, fd(), Int(unix.F_GETFD))
		case 5:
			o = b.Call(unix.SYS_LSEEK, fd(), number(r.Int64N(30)-3), number(r.Int64N(4)))
		case 6, 7:
			o = b.Call(unix.SYS_READ, fd(), buffer.Arg(), size())
		case 8:
			o = b.Call(unix.SYS_PREAD64, fd(), buffer.Arg(), size(), number(r.Int64N(30)))
		case 9:
			o = b.Call(unix.SYS_PWRITE64, fd(), buffer.Arg(), size(), number(r.Int64N(30)))
		case 10:
			o = b.Call(unix.SYS_GETUID)
		case 11:
			o = b.Call(Set, number(r.Int64N(10000)-1000))
		}
		if kind > 2 && r.IntN(2) == 0 {
			o.IntoAddr(state.Plus(8*safeCells + r.IntN(8*(stateCells-safeCells)-8)))
			if r.IntN(3) == 0 {
				o.KeepErrno()
			}
		}
		if r.IntN(6) == 0 {
			o.ZeroFails()
		}
		if r.IntN(6) == 0 {
			o.Retry()
		}
		switch target := labels[r.IntN(len(labels))]; r.IntN(5) {
		case 0:
			o.Expect(target, unix.EBADF, unix.ESPIPE, unix.EINVAL)
		case 1:
			o.Expect(target, unix.EPIPE, unix.ENOENT, unix.EIO, unix.EAGAIN, unix.EINVAL, unix.EBADF)
		case 2, 3:
			o.ExpectAny(target)
		}
	}
}
