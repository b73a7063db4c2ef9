package program_test

import (
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	. "github.com/berth-runtime/berth/engine/program"
)

type typicalMount struct {
	note   Note
	target string
}

var (
	typicalMounts []typicalMount
	typicalEnv    []string
)

func init() { // not part of what the benchmarks measure
	for i := range 74 {
		target := "/target/of/mount/" + strconv.Itoa(i)
		typicalMounts = append(typicalMounts, typicalMount{Note{"/mounts/" + strconv.Itoa(i), `mount "tmpfs" on ` + target}, target})
	}
	for i := range 20 {
		typicalEnv = append(typicalEnv, "VARIABLE_"+strconv.Itoa(i)+"=some value of it")
	}
}

// typical adds 300 ops of the kind that a container with many mounts has. They
// are jumped over, so that a process of this size needs no privileges.
func typical(b *Builder) {
	skip := b.NewLabel()
	b.Jump(skip)
	how := b.Words(Imm(unix.O_PATH|unix.O_CLOEXEC), Imm(0), Imm(unix.RESOLVE_IN_ROOT|unix.RESOLVE_NO_MAGICLINKS))
	for _, m := range typicalMounts {
		b.Because(m.note.Pointer, m.note.Text)
		retry, dir, fd := b.NewLabel(), b.Cell(), b.Cell()
		b.Place(retry)
		b.Call(unix.SYS_OPENAT2, Int(10), b.CString(m.target).Arg(), how.Arg(), Int(24)).Into(dir).Expect(retry, unix.EAGAIN)
		b.Call(unix.SYS_FSMOUNT, Int(11), Imm(unix.FSMOUNT_CLOEXEC), Imm(unix.MOUNT_ATTR_NOSUID)).Into(fd)
		b.Call(unix.SYS_MOVE_MOUNT, fd.Value(), b.CString("").Arg(), dir.Value(), b.CString("").Arg(), Imm(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH))
		b.Call(unix.SYS_CLOSE, fd.Value())
	}
	b.Because("/process", "prepare the process")
	b.Call(unix.SYS_SECCOMP, Imm(unix.SECCOMP_SET_MODE_FILTER), Imm(0), b.Words(Int(400), b.Bytes(make([]byte, 400*8)).Arg()).Arg())
	env := make([]Arg, 0, 21)
	for _, v := range typicalEnv {
		env = append(env, b.CString(v).Arg())
	}
	sh := b.CString("/bin/sh")
	b.Call(unix.SYS_EXECVE, sh.Arg(), b.Words(sh.Arg(), Imm(0)).Arg(), b.Words(append(env, Imm(0))...).Arg())
	b.Call(unix.SYS_GETPID)
	b.Place(skip)
}

func TestSizeOfATypicalImage(t *testing.T) {
	b := NewBuilder()
	typical(b)
	p := build(t, b)
	image, err := p.Image()
	if err != nil {
		t.Skip(err)
	}
	if len(p.Ops) != 300 || len(image) > 48<<10 {
		t.Errorf("%d bytes for %d ops", len(image), len(p.Ops))
	}
	t.Logf("%d bytes for %d ops", len(image), len(p.Ops))
}

func BenchmarkBuild(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		builder := NewBuilder()
		typical(builder)
		if _, err := builder.Build(3); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkImage(b *testing.B) {
	builder := NewBuilder()
	typical(builder)
	p := build(b, builder)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Image(); err != nil {
			b.Skip(err)
		}
	}
}

func BenchmarkPrint(b *testing.B) {
	builder := NewBuilder()
	typical(builder)
	p := build(b, builder)
	b.ReportAllocs()
	for b.Loop() {
		_ = p.String()
	}
}
