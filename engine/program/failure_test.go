package program_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"strconv"
	"syscall"
	"testing"

	. "github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// record is a failure record as the interpreter writes it.
func record(magic, index, errno, nr uint32) []byte {
	var b []byte
	for _, v := range []uint32{magic, index, errno, nr} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

const magic = 'B'<<24 | 'r'<<16 | 'T'<<8 | 'h'

func TestParseFailure(t *testing.T) {
	good := record(magic, 7, uint32(unix.ENOENT), 59)
	if f, ok := ParseFailure(good); !ok || f != (Failure{Index: 7, Errno: unix.ENOENT, Nr: 59}) {
		t.Errorf("%+v, %v", f, ok)
	}
	for name, b := range map[string][]byte{
		"nothing":        nil,
		"short":          good[:15],
		"long":           append(bytes.Clone(good), 0),
		"other magic":    record(magic+1, 7, 2, 59),
		"index too high": record(magic, MaxOps, 2, 59),
		"no errno":       record(magic, 7, 0, 59),
		"errno too high": record(magic, 7, 4096, 59),
	} {
		if f, ok := ParseFailure(b); ok {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func FuzzParseFailure(f *testing.F) {
	f.Add(record(magic, 7, 2, 59))
	f.Add(record(magic, 0, 4095, 0))
	f.Add([]byte("no record"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := ParseFailure(b)
		if !ok {
			return
		}
		if !bytes.Equal(b, record(magic, uint32(got.Index), uint32(got.Errno), got.Nr)) {
			t.Errorf("%+v from % x", got, b)
		}
	})
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
