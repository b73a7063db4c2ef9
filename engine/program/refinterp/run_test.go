package refinterp_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/engine/program/refinterp"
)

func build(t testing.TB, ops func(b *program.Builder)) *program.Program {
	t.Helper()
	b := program.NewBuilder()
	ops(b)
	p, err := b.Build(3)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// mountAndExec opens, mounts, closes and executes, as an init does.
func mountAndExec(b *program.Builder) {
	fs, mnt := b.Cell(), b.Cell()
	gone := b.NewLabel()
	b.Call(unix.SYS_FSOPEN, b.CString("proc").Arg(), program.Imm(1)).Into(fs)
	b.Call(unix.SYS_FSMOUNT, fs.Value(), program.Imm(1)).Into(mnt)
	b.Call(unix.SYS_CLOSE, fs.Value())
	b.Call(unix.SYS_MOVE_MOUNT, mnt.Value(), b.CString("").Arg(), program.Int(-100), b.CString("/proc").Arg(), program.Imm(4)).Expect(gone, unix.ENOENT)
	b.Call(unix.SYS_CLOSE, mnt.Value())
	b.Place(gone)
	sh := b.CString("/bin/sh")
	b.Call(unix.SYS_EXECVE, sh.Arg(), b.Words(sh.Arg(), b.CString("-i").Arg(), program.Imm(0)).Arg(), b.Words(program.Imm(0)).Arg())
}

func TestAWholeProgram(t *testing.T) {
	k := refinterp.Fake{FDs: []int{0, 1, 2, 4}}
	r, err := refinterp.Run(build(t, mountAndExec).Segment(), &k)
	if err != nil || !r.Gone || r.Failure != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	want := []string{
		`fsopen("proc", 1)`,
		`fsmount(3, 1)`,
		`close(3)`,
		`move_mount(5, &, -100, "/proc", 4)`,
		`close(5)`,
		`execve("/bin/sh", &, &)`,
	}
	if got := k.Texts(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if want := []int{0, 1, 2, 4}; !slices.Equal(k.FDs, want) {
		t.Errorf("open descriptors %v, want %v", k.FDs, want)
	}
	argv, ok := r.Memory.CStrings(k.Calls[5].Args[1])
	if !ok || !slices.Equal(argv, []string{"/bin/sh", "-i"}) {
		t.Errorf("%q, %v", argv, ok)
	}
}

func TestAnExpectedFailure(t *testing.T) {
	k := refinterp.Fake{Answer: func(c refinterp.Call, _ *refinterp.Memory) (int64, bool) {
		return -int64(unix.ENOENT), c.Nr == unix.SYS_MOVE_MOUNT
	}}
	r, err := refinterp.Run(build(t, mountAndExec).Segment(), &k)
	if err != nil || !r.Gone || r.Failure != nil {
		t.Fatalf("%+v, %v", r, err)
	}
	if !slices.Equal(k.FDs, []int{1}) { // jumped over the close: the test sees the leak
		t.Errorf("open descriptors %v", k.FDs)
	}
}

func TestAFailure(t *testing.T) {
	k := refinterp.Fake{Answer: func(c refinterp.Call, _ *refinterp.Memory) (int64, bool) {
		return -int64(unix.EPERM), c.Nr == unix.SYS_FSMOUNT
	}}
	r, err := refinterp.Run(build(t, mountAndExec).Segment(), &k)
	if err != nil || r.Gone || r.Status != 1 || r.Failure == nil || r.Failure.Index != 1 || r.Failure.Errno != unix.EPERM {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := k.Texts(); len(got) != 4 || !strings.HasPrefix(got[2], "sendto(3, ") || !strings.HasPrefix(got[3], "read(3, ") {
		t.Errorf("%q", got)
	}
}

func TestDescriptorsOfTheFake(t *testing.T) {
	k := refinterp.Fake{FDs: []int{0, 2}}
	mem := &refinterp.Memory{}
	for _, c := range []struct {
		nr   uint32
		args [6]uint64
		want int64
		fds  []int
	}{
		{unix.SYS_DUP, [6]uint64{2}, 1, []int{0, 1, 2}},
		{unix.SYS_SOCKET, [6]uint64{}, 3, []int{0, 1, 2, 3}},
		{unix.SYS_DUP3, [6]uint64{3, 9}, 9, []int{0, 1, 2, 3, 9}},
		{unix.SYS_DUP3, [6]uint64{3, 1}, 1, []int{0, 1, 2, 3, 9}},
		{unix.SYS_DUP3, [6]uint64{7, 1}, -int64(unix.EBADF), []int{0, 1, 2, 3, 9}},
		{unix.SYS_CLOSE, [6]uint64{1}, 0, []int{0, 2, 3, 9}},
		{unix.SYS_CLOSE, [6]uint64{1}, -int64(unix.EBADF), []int{0, 2, 3, 9}},
		{unix.SYS_CLOSE_RANGE, [6]uint64{3, 1<<32 - 1, unix.CLOSE_RANGE_CLOEXEC}, 0, []int{0, 2, 3, 9}},
		{unix.SYS_CLOSE_RANGE, [6]uint64{3, 1<<32 - 1}, 0, []int{0, 2}},
	} {
		got, gone := k.Call(c.nr, c.args, mem)
		if got != c.want || gone || !slices.Equal(k.FDs, c.fds) {
			t.Errorf("%s: %d, %v; open %v", k.Calls[len(k.Calls)-1].Text, got, gone, k.FDs)
		}
	}
}

// A segment that was not made by a Builder is refused, or runs to an end. It
// never makes Run panic or reach outside the segment.
func FuzzRun(f *testing.F) {
	f.Add(build(f, mountAndExec).Segment(), uint64(0))
	f.Add(build(f, mountAndExec).Segment(), uint64(1<<64-2))
	f.Add(build(f, func(b *program.Builder) {
		again := b.NewLabel()
		b.Place(again)
		b.Call(unix.SYS_GETPID).Into(b.Cell())
		b.Jump(again)
	}).Segment(), uint64(7))
	f.Fuzz(func(t *testing.T, segment []byte, result uint64) {
		segment = bytes.Clone(segment)
		if len(segment) >= 20 {
			binary.LittleEndian.PutUint32(segment[16:], uint32(segment[16])) // few jumps
		}
		before := bytes.Clone(segment)
		r, err := refinterp.Run(segment, constant(result))
		if err == nil && r.Failure != nil && r.Status != 1 {
			t.Errorf("%+v", r)
		}
		if !bytes.Equal(segment, before) {
			t.Error("the segment changed")
		}
	})
}

// constant is a kernel in which every call has the same result.
type constant int64

func (k constant) Call(uint32, [6]uint64, *refinterp.Memory) (int64, bool) { return int64(k), false }
