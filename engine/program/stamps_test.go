package program_test

import (
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	. "github.com/berth-runtime/berth/engine/program"
)

// A stamped Program does what it does without, and tells when it did it: with jumps
// over ops, loops back, retries and a block behind the end.
func TestStamps(t *testing.T) {
	program := func(stamped bool) *Program {
		b := NewBuilder()
		over, back, later, done := b.NewLabel(), b.NewLabel(), b.NewLabel(), b.NewLabel()
		b.Because("/first", "wait a little")
		b.Call(unix.SYS_NANOSLEEP, b.Words(Int(0), Int(2_000_000)).Arg(), Int(0))
		b.Because("/jump", "jump over what must not be")
		b.Jump(over)
		print(b, "never ")
		b.Place(over)
		again := b.Cell()
		b.Place(back)
		b.Because("/loop", "go round")
		print(b, "round ")
		b.Call(Set, again.Value()).ZeroFails().Expect(later, unix.EPIPE)
		if stamped {
			b.SendStamps(Int(reportFD))
		}
		print(b, "end")
		b.Call(unix.SYS_EXIT_GROUP, Int(0))
		b.Place(later)
		b.Set(again, Imm(1))
		b.Jump(back)
		b.Place(done)
		return build(t, b)
	}
	want := mustSucceed(t, program(false), startOptions{})
	p := program(true)
	before := time.Now()
	c := start(t, p, startOptions{})
	record := make([]byte, 4096)
	n, err := unix.Read(c.report, record)
	if err != nil || n != p.StampsLen() {
		t.Fatalf("%d bytes of %d, %v", n, p.StampsLen(), err)
	}
	after := time.Now()
	if f, failed := c.failure(); failed {
		t.Fatalf("%+v\n%s", f, p)
	}
	if got := c.output(); got != want || got != "round round end" || c.status() != 0 {
		t.Errorf("%q, not %q\n%s", got, want, p)
	}
	stamps, ok := p.ParseStamps(record[:n])
	if !ok {
		t.Fatalf("not stamps: % x", record[:n])
	}
	var notes []string
	for i, s := range stamps {
		notes = append(notes, s.Op.Note.Pointer)
		if s.When.Before(before.Add(-time.Millisecond)) || s.When.After(after.Add(time.Millisecond)) {
			t.Errorf("%s was made at %v, not between %v and %v", s.Op.Name(), s.When, before, after)
		}
		if i > 0 && s.When.Before(stamps[i-1].When) {
			t.Errorf("%s was made before %s", s.Op.Name(), stamps[i-1].Op.Name())
		}
	}
	if took := stamps[1].When.Sub(stamps[0].When); took < 2*time.Millisecond {
		t.Errorf("the wait of 2 ms took %v", took)
	}
	// The op that is jumped over is none of them; the one that sends is.
	if len(stamps) != 5 {
		t.Errorf("%d stamps: %q\n%s", len(stamps), notes, p)
	}
	for _, wrong := range [][]byte{nil, record[:n-1], append([]byte{1}, record[1:n]...)} {
		if _, ok := p.ParseStamps(wrong); ok {
			t.Errorf("%d bytes pass for stamps", len(wrong))
		}
	}
}

// A stamped Program tells which calls failed where it goes on regardless, and what they would have
// overwritten is as it was.
func TestStampsOfFailures(t *testing.T) {
	b := NewBuilder()
	next := func(o *Op, errno unix.Errno) {
		l := b.NewLabel()
		o.Expect(l, errno)
		b.Place(l)
	}
	kept, there, zero := b.Cell(), b.Cell(), b.Cell()
	b.Set(kept, Imm('k'))
	b.Because("/closed", "close nothing")
	next(b.Call(unix.SYS_CLOSE, Int(-1)), unix.EBADF)
	b.Because("/dup", "copy nothing")
	next(b.Call(unix.SYS_DUP, Int(-1)).Into(kept), unix.EBADF)
	b.Because("/fine", "copy a descriptor")
	next(b.Call(unix.SYS_DUP3, Int(1), Int('d'), Int(0)).Into(there), unix.EBADF)
	b.Because("/zero", "a result of zero")
	next(b.Call(unix.SYS_SCHED_YIELD).Into(zero).ZeroFails(), unix.EPIPE)
	b.SendStamps(Int(reportFD))
	for _, c := range []Cell{kept, there} {
		place := b.Zeroed(8)
		b.Call(Set, c.Value()).IntoAddr(place)
		b.Call(unix.SYS_WRITE, Int(1), place.Arg(), Int(1))
	}
	b.Call(unix.SYS_EXIT_GROUP, Int(0))
	p := build(t, b)
	c := start(t, p, startOptions{})
	record := make([]byte, 4096)
	n, err := unix.Read(c.report, record)
	if err != nil {
		t.Fatal(err)
	}
	if f, failed := c.failure(); failed {
		t.Fatalf("%+v\n%s", f, p)
	}
	if got := c.output(); got != "kd" {
		t.Errorf("the cells hold %q\n%s", got, p)
	}
	stamps, ok := p.ParseStamps(record[:n])
	if !ok {
		t.Fatalf("not stamps: % x", record[:n])
	}
	var failed []string
	for _, s := range stamps {
		if s.Tolerated != 0 {
			failed = append(failed, s.Op.Note.Pointer+" "+s.Op.Name()+" "+s.Tolerated.Error())
		}
	}
	if want := []string{"/closed close bad file descriptor", "/dup dup bad file descriptor"}; !slices.Equal(failed, want) {
		t.Errorf("tolerated: %q, not %q\n%s", failed, want, p)
	}
}

// A failure of a stamped Program leads to the note of the op that failed.
func TestStampedFailure(t *testing.T) {
	b := NewBuilder()
	b.Because("/fine", "get the pid")
	b.Call(unix.SYS_GETPID)
	b.Because("/broken", "close nothing")
	b.Call(unix.SYS_CLOSE, Int(-1))
	b.SendStamps(Int(reportFD))
	p := build(t, b)
	if f := mustFail(t, p, startOptions{}); p.Ops[f.Index].Note.Pointer != "/broken" || f.Errno != unix.EBADF {
		t.Errorf("%+v: %+v", f, p.Ops[f.Index].Note)
	}
}

// A socket that is full or gone loses the stamps, and nothing else.
func TestStampsThatNobodyGets(t *testing.T) {
	b := NewBuilder()
	print(b, "on")
	b.SendStamps(Int(99))
	print(b, "ward")
	if got := mustSucceed(t, build(t, b), startOptions{}); got != "onward" {
		t.Errorf("%q", got)
	}
}
