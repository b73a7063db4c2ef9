package program_test

import (
	"encoding/binary"
	"os"
	"testing"

	. "github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

func TestFallingOffTheEndExitsWithZero(t *testing.T) {
	if out := mustSucceed(t, build(t, NewBuilder()), startOptions{}); out != "" {
		t.Errorf("an empty program wrote %q", out)
	}
}

func TestExecIsTheLastOp(t *testing.T) {
	b := NewBuilder()
	sh := b.CString("/bin/sh")
	argv := b.Words(b.CString("berth-sh").Arg(), b.CString("-c").Arg(), b.CString(`echo "$0 $X"; exit 7`).Arg(), Imm(0))
	envp := b.Words(b.CString("X=y").Arg(), Imm(0))
	b.Call(unix.SYS_FCNTL, Int(reportFD), Int(unix.F_SETFD), Int(unix.FD_CLOEXEC))
	b.Call(unix.SYS_EXECVE, sh.Arg(), argv.Arg(), envp.Arg())
	print(b, "not reached\n")
	c := start(t, build(t, b), startOptions{})
	if f, failed := c.failure(); failed {
		t.Fatal(f)
	}
	if out := c.output(); out != "/bin/sh y\n" && out != "berth-sh y\n" {
		t.Errorf("output %q", out)
	}
	if s := c.status(); s != 7 {
		t.Errorf("exit status %d", s)
	}
}

// Each of the six arguments comes as a number and from a cell, in all
// combinations. splice has a use for each of them, and refuses a wrong one.
func TestSixArgumentsFromCells(t *testing.T) {
	fd := memfd(t, "abcdefghij")
	for mask := range 1 << 6 {
		b := NewBuilder()
		offset := b.Words(Int(3))
		args := []Arg{Int(firstFD), offset.Arg(), Int(1), Imm(0), Int(4), Imm(unix.SPLICE_F_MORE)}
		for i := range args {
			if mask>>i&1 != 0 {
				args[i] = set(b, args[i])
			}
		}
		b.Call(unix.SYS_SPLICE, args...)
		if out := mustSucceed(t, build(t, b), startOptions{extraFiles: []*os.File{fd}}); out != "defg" {
			t.Errorf("cells %06b: %q", mask, out)
		}
	}
}

// set gives the value by way of a cell.
func set(b *Builder, a Arg) Arg {
	c := b.Cell()
	b.Set(c, a)
	return c.Value()
}

func memfd(t *testing.T, content string) *os.File {
	t.Helper()
	fd, err := unix.MemfdCreate("content", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "content")
	t.Cleanup(func() { f.Close() })
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestResultsGoToCellsAndIntoStructures(t *testing.T) {
	b := NewBuilder()
	fd := b.Cell()
	b.Call(unix.SYS_MEMFD_CREATE, b.CString("sent").Arg(), Imm(0)).Into(fd)
	b.Call(unix.SYS_WRITE, fd.Value(), b.CString("hello").Arg(), Int(5))
	// The descriptor goes straight into the control message that sends it.
	control := b.Words(Int(20), Imm(unix.SOL_SOCKET|unix.SCM_RIGHTS<<32), Imm(0))
	b.Call(unix.SYS_DUP, fd.Value()).IntoAddr(control.Plus(16))
	iov := b.Words(b.CString("x").Arg(), Int(1))
	msg := b.Words(Imm(0), Imm(0), iov.Arg(), Int(1), control.Arg(), Int(24), Imm(0))
	b.Call(unix.SYS_SENDMSG, Int(reportFD), msg.Arg(), Imm(0))
	c := start(t, build(t, b), startOptions{})

	oob := make([]byte, 64)
	n, oobn, _, _, err := unix.Recvmsg(c.report, make([]byte, 8), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n != 1 {
		t.Fatalf("%d bytes, %v", n, err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		t.Fatalf("%v, %v", messages, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		t.Fatalf("%v, %v", fds, err)
	}
	defer unix.Close(fds[0])
	got := make([]byte, 16)
	if n, err := unix.Pread(fds[0], got, 0); string(got[:n]) != "hello" {
		t.Errorf("the sent file holds %q, %v", got[:n], err)
	}
	if s := c.status(); s != 0 {
		t.Errorf("exit status %d", s)
	}
}

func TestExpectedErrnos(t *testing.T) {
	errnos := []unix.Errno{unix.EBADF, unix.ENOENT, unix.EPERM, unix.EIO, unix.ENOSYS, unix.EINVAL}
	for place := range errnos { // EBADF at each of the six places
		list := append([]unix.Errno{}, errnos...)
		list[0], list[place] = list[place], list[0]
		b := NewBuilder()
		l := b.NewLabel()
		b.Call(unix.SYS_CLOSE, Int(99)).Expect(l, list...)
		print(b, "not skipped")
		b.Place(l)
		print(b, "end")
		if out := mustSucceed(t, build(t, b), startOptions{}); out != "end" {
			t.Errorf("place %d: %q", place, out)
		}
	}

	b := NewBuilder()
	l := b.NewLabel()
	b.Call(unix.SYS_GETPID).Expect(l, errnos...)
	b.Place(l)
	b.Call(unix.SYS_CLOSE, Int(99)).Expect(l, errnos[1:]...)
	if f := mustFail(t, build(t, b), startOptions{}); f != (Failure{Index: 1, Errno: unix.EBADF}) {
		t.Errorf("%+v", f)
	}

	b = NewBuilder()
	l = b.NewLabel()
	b.Call(unix.SYS_CLOSE, Int(99)).ExpectAny(l)
	print(b, "not skipped")
	b.Place(l)
	if out := mustSucceed(t, build(t, b), startOptions{}); out != "" {
		t.Errorf("%q", out)
	}
}

// The largest errno, the number below it and zero are told apart by Set,
// whose result can be anything.
func TestRangeOfErrnos(t *testing.T) {
	for _, c := range []struct {
		value int64
		fails bool
	}{
		{0, false}, {1, false}, {4095, false}, {-1, true}, {-4094, true}, {-4095, true}, {-4096, false}, {-4097, false},
		{1<<63 - 1, false}, {-1 << 63, false}, {1<<32 - 1, false}, {1<<32 - 4095, false}, {-1 << 32, false},
	} {
		b := NewBuilder()
		cell := b.Cell()
		b.Set(cell, Int(c.value))
		printCell(b, cell)
		p := build(t, b)
		if c.fails {
			if f := mustFail(t, p, startOptions{}); f != (Failure{Index: 0, Errno: unix.Errno(-c.value)}) {
				t.Errorf("%d: %+v", c.value, f)
			}
			continue
		}
		out := mustSucceed(t, p, startOptions{})
		if want := binary.LittleEndian.AppendUint64(nil, uint64(c.value)); out != string(want) {
			t.Errorf("%d: % x", c.value, out)
		}
	}
}

func TestAFailedCallLeavesItsCellAlone(t *testing.T) {
	b := NewBuilder()
	cell, l := b.Words(Imm(0x1122334455667788)).Cell(), b.NewLabel()
	b.Call(unix.SYS_CLOSE, Int(99)).Into(cell).Expect(l, unix.EBADF)
	b.Place(l)
	printCell(b, cell)
	if out := mustSucceed(t, build(t, b), startOptions{}); out != "\x88\x77\x66\x55\x44\x33\x22\x11" {
		t.Errorf("% x", out)
	}
}

func TestBranchOnZero(t *testing.T) {
	b := NewBuilder()
	pid, child := b.Cell(), b.NewLabel()
	b.Call(unix.SYS_CLONE, Imm(uint64(unix.SIGCHLD)), Imm(0), Imm(0), Imm(0), Imm(0)).
		ZeroFails().Expect(child, unix.EPIPE).Into(pid)
	status := b.Zeroed(8)
	b.Call(unix.SYS_WAIT4, pid.Value(), status.Arg(), Imm(0), Imm(0))
	print(b, "parent ")
	printCell(b, status.Cell())
	b.Call(unix.SYS_EXIT_GROUP, Int(0))
	b.Place(child)
	print(b, "child ")
	b.Call(unix.SYS_EXIT_GROUP, Int(5))
	if out, want := mustSucceed(t, build(t, b), startOptions{}), "child parent \x00\x05\x00\x00\x00\x00\x00\x00"; out != want {
		t.Errorf("%q, want %q", out, want)
	}
}

func TestJumpsAndFuel(t *testing.T) {
	loop := func(fuel uint32) *Builder {
		b := NewBuilder()
		b.SetFuel(fuel)
		again, end := b.NewLabel(), b.NewLabel()
		b.Place(again)
		b.Call(unix.SYS_READ, Int(firstFD), b.Zeroed(8).Arg(), Int(1)).ZeroFails().Expect(end, unix.EPIPE)
		print(b, ".")
		b.Jump(again)
		b.Place(end)
		print(b, "end")
		return b
	}
	input := func() startOptions {
		r, w := pipe(t)
		if _, err := w.WriteString("abc"); err != nil {
			t.Fatal(err)
		}
		w.Close()
		return startOptions{extraFiles: []*os.File{r}}
	}
	// Three jumps back and the one out of the loop.
	if out := mustSucceed(t, build(t, loop(4)), input()); out != "...end" {
		t.Errorf("%q", out)
	}
	if f := mustFail(t, build(t, loop(3)), input()); f != (Failure{Index: 0, Errno: unix.ELOOP}) {
		t.Errorf("fuel for three: %+v", f)
	}
	if f := mustFail(t, build(t, loop(2)), input()); f != (Failure{Index: 2, Errno: unix.ELOOP}) {
		t.Errorf("fuel for two: %+v", f)
	}

	// A retry that never succeeds ends, with the fuel that every Program has.
	r, w := pipe(t)
	defer w.Close()
	b := NewBuilder()
	b.Call(unix.SYS_FCNTL, Int(firstFD), Int(unix.F_SETFL), Imm(unix.O_NONBLOCK))
	again := b.NewLabel()
	b.Place(again)
	b.Call(unix.SYS_READ, Int(firstFD), b.Zeroed(8).Arg(), Int(1)).Expect(again, unix.EAGAIN)
	if f := mustFail(t, build(t, b), startOptions{extraFiles: []*os.File{r}}); f != (Failure{Index: 1, Errno: unix.ELOOP}) {
		t.Errorf("%+v", f)
	}
}
