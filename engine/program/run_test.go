package program_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	. "github.com/berth-runtime/berth/engine/program"
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

func TestTheEndOfTheGateFails(t *testing.T) {
	r, w := pipe(t)
	b := NewBuilder()
	b.Call(unix.SYS_READ, Int(firstFD), b.Zeroed(8).Arg(), Int(1)).ZeroFails()
	p := build(t, b)
	if _, err := w.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	mustSucceed(t, p, startOptions{extraFiles: []*os.File{r}})
	w.Close()
	if f := mustFail(t, p, startOptions{extraFiles: []*os.File{r}}); f != (Failure{Index: 0, Errno: unix.EPIPE}) {
		t.Errorf("%+v", f)
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

func TestAProcessThatFailedWaitsForItsParent(t *testing.T) {
	for _, byWriting := range []bool{true, false} {
		b := NewBuilder()
		// Arguments that would spoil the report if they were left behind.
		b.Call(unix.SYS_CLOSE, Int(99), Imm(98), Imm(97), Imm(96), Imm(95), Imm(94)).Because("/mounts/3", "close 99")
		p := build(t, b)
		c := start(t, p, startOptions{})
		f, failed := c.failure()
		if !failed || f != (Failure{Index: 0, Errno: unix.EBADF, Nr: unix.SYS_CLOSE}) {
			t.Fatalf("%+v, %v", f, failed)
		}
		if n := p.Ops[f.Index].Note; n != (Note{"/mounts/3", "close 99"}) {
			t.Errorf("%+v", n)
		}
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, c.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil || info.Signo != 0 {
			t.Errorf("the process did not wait: %v, %v", info.Signo, err)
		}
		if _, err := os.Stat("/proc/" + strconv.Itoa(c.Pid) + "/fd/1"); err != nil {
			t.Error(err)
		}
		if byWriting {
			if err := unix.Send(c.report, []byte{0}, 0); err != nil {
				t.Error(err)
			}
		} else {
			c.closeReport()
		}
		if s := c.status(); s != 1 {
			t.Errorf("exit status %d", s)
		}
		if byWriting { // a byte that was not read makes this ECONNRESET
			if n, err := unix.Read(c.report, make([]byte, 1)); n != 0 || err != nil {
				t.Errorf("the process did not read what it had to wait for: %d, %v", n, err)
			}
		}
	}
}

func TestAFailureThatNobodyHears(t *testing.T) {
	b := NewBuilder()
	b.Call(unix.SYS_CLOSE, Int(99))
	p := build(t, b)
	for name, o := range map[string]startOptions{
		"no descriptor": {noReport: true},
		"parent gone":   {deadReports: true}, // and no SIGPIPE
	} {
		if s := start(t, p, o).status(); s != 1 {
			t.Errorf("%s: exit status %d", name, s)
		}
	}
}

// A filter of the user's may refuse even exit_group. The process must neither
// loop nor run into what follows the interpreter.
func TestAFilterThatRefusesTheExit(t *testing.T) {
	onlyNative(t, "the emulator has no seccomp for its guest")
	filter := binary.LittleEndian.AppendUint64(nil, unix.BPF_LD|unix.BPF_W|unix.BPF_ABS) // the number
	filter = binary.LittleEndian.AppendUint64(filter, unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K|1<<16|unix.SYS_EXIT_GROUP<<32)
	filter = binary.LittleEndian.AppendUint64(filter, unix.BPF_RET|unix.SECCOMP_RET_ALLOW<<32)
	filter = binary.LittleEndian.AppendUint64(filter, unix.BPF_RET|(unix.SECCOMP_RET_ERRNO|uint64(unix.EPERM))<<32)
	b := NewBuilder()
	b.Call(unix.SYS_PRCTL, Int(unix.PR_SET_NO_NEW_PRIVS), Int(1), Int(0), Int(0), Int(0))
	b.Call(unix.SYS_SECCOMP, Int(unix.SECCOMP_SET_MODE_FILTER), Int(0), b.Words(Int(4), b.Bytes(filter).Arg()).Arg())
	c := start(t, build(t, b), startOptions{})
	if f, failed := c.failure(); failed {
		t.Fatal(f)
	}
	s, err := c.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Sys().(syscall.WaitStatus); !w.Signaled() || w.Signal() != syscall.SIGILL {
		t.Errorf("ended by %v, want SIGILL", s)
	}
}

func TestNothingIsNeededFromTheParent(t *testing.T) {
	b := NewBuilder()
	closed := b.NewLabel()
	b.Call(unix.SYS_FCNTL, Int(0), Int(unix.F_GETFD)).Expect(closed, unix.EBADF)
	if runner == "" { // an emulator may have opened something as descriptor 0
		print(b, "stdin is open ")
	}
	b.Place(closed)
	env := b.CString("/proc/self/environ")
	fd := b.Cell()
	b.Call(unix.SYS_OPENAT, Int(unix.AT_FDCWD), env.Arg(), Imm(0)).Into(fd)
	empty := b.NewLabel()
	b.Call(unix.SYS_READ, fd.Value(), b.Zeroed(8).Arg(), Int(8)).ZeroFails().Expect(empty, unix.EPIPE)
	print(b, "the environment is not empty")
	b.Place(empty)
	print(b, "end")
	if out := mustSucceed(t, build(t, b), startOptions{noStdin: true}); out != "end" {
		t.Errorf("%q", out)
	}
}

// The init of a created container is this: a process that waits in a read.
func TestMemoryOfAWaitingProcess(t *testing.T) {
	onlyNative(t, "the memory would be the emulator's")
	all, whole := pssOfWaiting(t, func(*Builder) {})
	_, done := pssOfWaiting(t, (*Builder).ForgetDone)
	if all > 200 {
		t.Errorf("PSS is %d KiB, want at most 200", all)
	}
	// 300 ops of 80 bytes are five whole pages.
	if done > whole-16 {
		t.Errorf("PSS of the image is %d KiB once the ops are forgotten, was %d", done, whole)
	}
	t.Logf("PSS is %d KiB, of the image %d, and %d once the ops are forgotten", all, whole, done)
}

func TestOpsAreReadAgainWhenForgotten(t *testing.T) {
	r, w := pipe(t)
	if _, err := w.WriteString("abc"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	b := NewBuilder()
	again, end := b.NewLabel(), b.NewLabel()
	b.Place(again)
	typical(b)
	b.Call(unix.SYS_READ, Int(firstFD), b.Zeroed(8).Arg(), Int(1)).ZeroFails().Expect(end, unix.EPIPE)
	print(b, ".")
	b.ForgetDone()
	b.Jump(again)
	b.Place(end)
	print(b, "end")
	if out := mustSucceed(t, build(t, b), startOptions{extraFiles: []*os.File{r}}); out != "...end" {
		t.Errorf("%q", out)
	}
}

// pssOfWaiting runs a Program of 300 ops up to where it waits. The rest of what is not
// its image is the stack, which has one to three pages by where the kernel puts it.
func pssOfWaiting(t *testing.T, before func(*Builder)) (all, image int) {
	t.Helper()
	r, w := pipe(t)
	b := NewBuilder()
	typical(b)
	before(b)
	print(b, "ready")
	b.Call(unix.SYS_READ, Int(firstFD), b.Zeroed(8).Arg(), Int(1))
	c := start(t, build(t, b), startOptions{extraFiles: []*os.File{r}})
	if _, err := c.stdout.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("/proc/" + strconv.Itoa(c.Pid) + "/smaps")
	if err != nil {
		t.Skipf("no smaps: %v", err)
	}
	ofImage := false
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		switch f := strings.Fields(lines.Text()); {
		case len(f) > 1 && f[0] == "Pss:":
			pss, _ := strconv.Atoi(f[1])
			all += pss
			if ofImage {
				image += pss
			}
		case len(f) > 1 && !strings.HasSuffix(f[0], ":"): // a mapping begins
			ofImage = strings.Contains(lines.Text(), "/memfd:")
		}
	}
	if image == 0 || all == image {
		t.Errorf("no PSS of the image and of the stack in\n%s", data)
	}
	w.Close()
	c.status()
	return all, image
}
