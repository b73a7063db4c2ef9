package program_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	. "github.com/berth-runtime/berth/engine/program"
)

func TestBuildRefuses(t *testing.T) {
	other := NewBuilder()
	for range 100 {
		other.Zeroed(1000)
	}
	far := other.Zeroed(8) // a place that smaller Programs do not have
	for range 5 {
		other.NewLabel()
	}
	foreign := other.NewLabel()

	for name, c := range map[string]struct {
		mistake func(b *Builder)
		problem string
		op      int
	}{
		"seven arguments":         {func(b *Builder) { b.Call(1, make([]Arg, 7)...) }, "six arguments", 1},
		"no place":                {func(b *Builder) { b.Call(1, Addr{}.Arg()) }, "argument points outside", 1},
		"a place beyond the data": {func(b *Builder) { b.Call(1, far.Arg()) }, "argument points outside", 1},
		"a place before the data": {func(b *Builder) { b.Call(1, b.Zeroed(8).Plus(-9).Arg()) }, "argument points outside", 1},
		"far outside":             {func(b *Builder) { b.Call(1, b.Zeroed(8).Plus(1<<30).Arg()) }, "argument points outside", 1},
		"half a cell":             {func(b *Builder) { b.Call(1, b.Zeroed(8).Plus(1).Cell().Value()) }, "loaded from outside", 1},
		"no cell":                 {func(b *Builder) { b.Call(1, Cell{}.Value()) }, "loaded from outside", 1},
		"result nowhere":          {func(b *Builder) { b.Call(1).Into(Cell{}) }, "result goes to a place outside", 1},
		"result into a string":    {func(b *Builder) { b.Call(1).IntoAddr(b.CString("a long string")) }, "overwrite a string", 1},
		"seven errnos":            {func(b *Builder) { b.Call(1).Expect(placed(b), 1, 2, 3, 4, 5, 6, 7) }, "more expected errnos", 1},
		"seven errnos in steps":   {func(b *Builder) { l := placed(b); b.Call(1).Expect(l, 1, 2, 3, 4, 5).Expect(l, 6, 7) }, "more expected errnos", 1},
		"errno 0":                 {func(b *Builder) { b.Call(1).Expect(placed(b), 0) }, "out of range", 1},
		"errno 4096":              {func(b *Builder) { b.Call(1).Expect(placed(b), 4096) }, "out of range", 1},
		"two labels":              {func(b *Builder) { b.Call(1).Expect(placed(b), 1).ExpectAny(placed(b)) }, "two labels", 1},
		"label not placed":        {func(b *Builder) { b.Call(1).ExpectAny(b.NewLabel()) }, "not placed", 1},
		"foreign label":           {func(b *Builder) { b.Call(1).ExpectAny(foreign) }, "not placed", 1},
		"foreign label placed":    {func(b *Builder) { b.Place(foreign) }, "another program", -1},
		"label placed twice":      {func(b *Builder) { b.Place(placed(b)); b.Place(1) }, "placed twice", -1},
		"NUL in a string":         {func(b *Builder) { b.CString("a\x00b") }, "NUL", -1},
		"negative size":           {func(b *Builder) { b.Zeroed(-1) }, "negative size", -1},
		"data too large":          {func(b *Builder) { b.Zeroed(MaxImage) }, "larger than", -1},
		"string too large":        {func(b *Builder) { b.CString(strings.Repeat("x", MaxImage)) }, "larger than", -1},
		"cell value in words":     {func(b *Builder) { b.Words(b.Cell().Value()) }, "IntoAddr", -1},
		"words point nowhere":     {func(b *Builder) { b.Words(Addr{}.Arg()) }, "points outside", -1},
		"too many ops": {func(b *Builder) {
			for range MaxOps {
				b.Call(1)
			}
		}, "larger than", -1},
		"ops and data too large": {func(b *Builder) { b.Zeroed(MaxImage - 1200); b.Call(1) }, "larger than", -1},
	} {
		b := NewBuilder()
		b.Because("/hostname", "set the hostname")
		b.Call(unix.SYS_GETPID)
		c.mistake(b)
		p, err := b.Build(3)
		var mistake *BuildError
		if p != nil || !errors.As(err, &mistake) {
			t.Errorf("%s: %v, %v", name, p, err)
			continue
		}
		if !strings.Contains(err.Error(), c.problem) || mistake.Op != c.op {
			t.Errorf("%s: op %d: %v", name, mistake.Op, err)
		}
		if c.op >= 0 && mistake.Note.Pointer != "/hostname" {
			t.Errorf("%s: note %+v", name, mistake.Note)
		}
	}

	if _, err := NewBuilder().Build(-1); err == nil {
		t.Error("a negative report descriptor is accepted")
	}
}

func placed(b *Builder) Label {
	l := b.NewLabel()
	b.Place(l)
	return l
}

func TestTheFirstMistakeIsTold(t *testing.T) {
	b := NewBuilder()
	b.Call(1, make([]Arg, 7)...).Because("/a", "first")
	b.Call(1, make([]Arg, 7)...).Because("/b", "second")
	b.CString("\x00")
	_, err := b.Build(3)
	var mistake *BuildError
	if !errors.As(err, &mistake) || mistake.Op != 0 {
		t.Errorf("%v", err)
	}
}

func TestNotes(t *testing.T) {
	b := NewBuilder()
	b.Call(1)
	b.Because("/a", "a")
	kept := b.Call(1)
	b.Call(1).Because("/b", "b")
	for range 1000 { // more than a chunk of ops: what Call returned stays good
		b.Call(1)
	}
	kept.Because("/c", "c")
	p := build(t, b)
	for i, want := range []Note{{}, {"/c", "c"}, {"/b", "b"}, {"/a", "a"}} {
		if got := p.Ops[i].Note; got != want {
			t.Errorf("op %d: %+v, want %+v", i, got, want)
		}
	}
	if n := len(p.Ops); n != 1003 || p.Ops[n-1].Note != (Note{"/a", "a"}) {
		t.Errorf("%d ops, the last with %+v", n, p.Ops[n-1].Note)
	}
}

func TestManyOpsRun(t *testing.T) {
	b := NewBuilder()
	for range 500 {
		b.Call(unix.SYS_GETPID)
	}
	print(b, "end")
	b.Call(unix.SYS_CLOSE, Int(99))
	p := build(t, b)
	if f := mustFail(t, p, startOptions{}); f.Index != 501 || f.Errno != unix.EBADF {
		t.Errorf("%+v", f)
	}
}

func TestEqualStringsShareAPlace(t *testing.T) {
	b := NewBuilder()
	a, again, c := b.CString("a"), b.CString("a"), b.CString("b")
	if a != again || a == c {
		t.Error(a, again, c)
	}
}
