package program_test

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	. "github.com/berth-runtime/berth/engine/program"
)

// everyForm is a Program with everything that has a printed form.
func everyForm() *Builder {
	b := NewBuilder()
	fd, nameless := b.Cell(), b.Zeroed(16)
	retry, done := b.NewLabel(), b.NewLabel()

	b.Because("/root/path", `open the root "/a b"`)
	b.Place(retry)
	how := b.Words(Imm(unix.O_PATH|unix.O_CLOEXEC), Imm(0), Imm(unix.RESOLVE_IN_ROOT))
	b.Call(unix.SYS_OPENAT2, Int(unix.AT_FDCWD), b.CString("/a b").Arg(), how.Arg(), Int(24)).Into(fd).Expect(retry, unix.EAGAIN, unix.EINTR)
	b.Call(unix.SYS_FCHDIR, fd.Value()).Retry()

	b.Because("", "say so")
	b.Call(unix.SYS_WRITE, Int(1), b.CString("tab\there").Plus(4).Arg(), Int(4)).ExpectAny(done)
	b.Call(unix.SYS_WRITE, Int(1), b.Bytes([]byte("text")).Arg(), Int(4))
	b.Call(unix.SYS_WRITE, Int(1), b.Bytes([]byte{0, 1, 2, 255}).Plus(2).Arg(), Int(4))
	b.Call(unix.SYS_WRITE, Int(1), b.Bytes(make([]byte, 100)).Arg(), Int(100))
	b.Call(unix.SYS_READ, Int(0), nameless.Arg(), Int(16)).ZeroFails().Expect(done, unix.EPIPE, 4000)
	b.Call(unix.SYS_READ, Int(0), nameless.Plus(4).Arg(), Int(12))
	b.Call(unix.SYS_READ, Int(0), fd.Addr().Arg(), Int(8))

	control := b.Words(Int(20), Imm(unix.SOL_SOCKET|unix.SCM_RIGHTS<<32), Imm(0))
	iov := b.Words(b.CString("x").Arg(), Int(1), Int(-100))
	msg := b.Words(Imm(0), iov.Arg(), control.Arg(), fd.Addr().Arg())
	b.Call(unix.SYS_DUP, fd.Value()).IntoAddr(control.Plus(16))
	b.Call(unix.SYS_SENDMSG, Int(3), msg.Arg(), Imm(unix.MSG_NOSIGNAL))
	record := b.Bytes([]byte("pid=12345678\xff"))
	b.Call(unix.SYS_GETPID).IntoAddr(record.Plus(4))
	b.Call(unix.SYS_WRITE, Int(3), record.Arg(), Int(13))

	b.Because("/process/args", "execute /bin/sh")
	b.Set(fd, Int(7))
	b.Jump(done)
	b.Call(9999)
	b.Place(done)
	sh := b.CString("/bin/sh")
	b.Call(unix.SYS_EXECVE, sh.Arg(), b.Words(sh.Arg(), b.CString("").Arg(), Imm(0)).Arg(), b.Words(Imm(0)).Arg())
	return b
}

const everyFormPrinted = `
   0  $1 = openat2(AT_FDCWD, "/a b", {O_CLOEXEC|O_PATH 0 RESOLVE_IN_ROOT}, 24)  EAGAIN EINTR → 0  # open the root "/a b"  (/root/path)
   1  fchdir($1)  EAGAIN again  # open the root "/a b"  (/root/path)
   2  write(1, "here", 4)  any → 16  # say so
   3  write(1, "text", 4)  # say so
   4  write(1, hex:000102ff+2, 4)  # say so
   5  write(1, 100 bytes fnv:1fc05eb337858375, 100)  # say so
   6  read(0, buf1[16], 16)  0 is EPIPE  EPIPE errno 4000 → 16  # say so
   7  read(0, buf1[16]+4, 12)  # say so
   8  read(0, &$1, 8)  # say so
   9  $2 = dup($1)  # say so
  10  sendmsg(3, {0 {"x" 1 -100} {0x14 0x100000001 $2} &$1}, MSG_NOSIGNAL)  # say so
  11  $3 = getpid()  # say so
  12  write(3, {"pid=" $3 hex:ff}, 13)  # say so
  13  $1 = set(7)  # execute /bin/sh  (/process/args)
  14  jump → 16  # execute /bin/sh  (/process/args)
  15  syscall_9999()  # execute /bin/sh  (/process/args)
  16  execve("/bin/sh", {"/bin/sh" "" 0}, {0})  # execute /bin/sh  (/process/args)
`

func TestPrintedForm(t *testing.T) {
	p := build(t, everyForm())
	got, want := p.String(), strings.TrimPrefix(everyFormPrinted, "\n")
	if got != want {
		t.Errorf("got\n%s", got)
		g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Errorf("line %d:\ngot  %s\nwant %s", i, g[i], w[i])
			}
		}
	}
	lines := p.Lines()
	if len(lines) != len(p.Ops) || lines[16].Call != "execve" || lines[16].Target != -1 || lines[2].Target != 16 {
		t.Errorf("%+v", lines)
	}
}

// What is printed depends on what the Program does, not on where its data is.
func TestPrintedFormDoesNotDependOnAddresses(t *testing.T) {
	forms := map[string]bool{}
	for _, unrelated := range []int{0, 1, 1000} {
		b := NewBuilder()
		for i := range unrelated {
			b.CString(strings.Repeat("x", i))
		}
		path := b.CString("/some/path")
		b.Call(unix.SYS_EXECVE, path.Arg(), b.Words(path.Arg(), Imm(0)).Arg(), b.Cell().Addr().Arg())
		forms[build(t, b).String()] = true
	}
	if len(forms) != 1 {
		t.Errorf("%d forms: %v", len(forms), forms)
	}
}
