package integration

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"runtime"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// What a look at the file tells is told by create. From some of these words Docker and Podman make
// exit codes 126 and 127.
func TestProgramThatIsNotThere(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(c *harness.Container)
		program string
		words   []string
	}{
		"not in PATH": {nil, "nosuch", []string{"nosuch", "executable file not found in $PATH"}},
		"not there":   {nil, "/no/such", []string{"/no/such", "no such file or directory"}},
		// Each client knows one of the two by which it tells this from an error of the runtime's.
		"a folder":         {nil, "/etc", []string{`exec: "/etc": `, "is a directory", "permission denied"}},
		"below a file":     {nil, "/etc/passwd/x", []string{"/etc/passwd/x", "not a directory"}},
		"not executable":   {nil, "/etc/passwd", []string{"/etc/passwd", "permission denied"}},
		"a dangling link":  {func(c *harness.Container) { link(c, "dangling", "/nowhere") }, "/dangling", []string{"/dangling", "no such file or directory"}},
		"a link in a ring": {func(c *harness.Container) { link(c, "ring", "/ring") }, "/ring", []string{"/ring", "too many levels of symbolic links"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container(test.program)
			if test.prepare != nil {
				test.prepare(c)
			}
			refused(t, c, test.words...)
		})
	}
}

// What only execve tells must be told as well, by create or by start, and with more than its errno:
// of a missing interpreter it says ENOENT, as if the program weren't there.
func TestProgramThatCannotBeExecuted(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		mode    os.FileMode
		uid     uint32
		words   []string
	}{
		"interpreter missing":           {"#!/no/such/interpreter -x\n", 0o755, 0, []string{"/program", "/no/such/interpreter"}},
		"loader missing":                {dynamicProgram(), 0o755, 0, []string{"/program", "/lib/no-such-loader.so"}},
		"another architecture":          {foreignProgram(), 0o755, 0, []string{"/program", "s390"}},
		"no program":                    {"just some text", 0o755, 0, []string{"/program", "exec format error"}},
		"empty":                         {"", 0o755, 0, []string{"/program", "exec format error"}},
		"the user may not execute it":   {"#!/bin/sh\n", 0o700, 1000, []string{"/program", "permission denied"}},
		"interpreter is not executable": {"#!/etc/passwd\n", 0o755, 0, []string{"/program", "permission denied"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/program")
			c.WriteFile("program", test.content, test.mode)
			// Without the capability to pass over modes, which the config could give to any user.
			c.Spec.Process.User.UID, c.Spec.Process.Capabilities = test.uid, &specs.LinuxCapabilities{}
			c.Run().Fails(t, test.words...)
			b.Berth("state", c.ID).Fails(t, "container does not exist")
			r := c.TryCreate()
			if r.Code == 0 {
				r = c.Command("start", nil).Run()
			}
			r.Fails(t, test.words...)
		})
	}
}

// exec of the same fails with 255, and leaves the container as it is.
func TestExecOfAProgramThatCannotBeExecuted(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	c.WriteFile("script", "#!/no/such/interpreter\n", 0o755)
	c.WriteFile("foreign", foreignProgram(), 0o755)
	c.RunDetached()
	for program, word := range map[string]string{
		"nosuch": "executable file not found in $PATH", "/no/such": "no such file or directory", "/etc": "is a directory",
		"/etc/passwd": "permission denied", "/script": "/no/such/interpreter", "/foreign": "s390",
	} {
		c.Exec(nil, program).FailsWith(t, 255, program, word)
	}
	if s := c.State(); s.Status != "running" {
		t.Errorf("status %s", s.Status)
	}
}

func link(c *harness.Container, name, target string) {
	c.Box.T.Helper()
	if err := os.Symlink(target, c.Path(name)); err != nil {
		c.Box.T.Fatal(err)
	}
}

// foreignProgram is the head of an ELF program for s390x, on which nobody runs these tests.
func foreignProgram() string {
	return string(elfHeader(elf.EM_S390, elf.ELFDATA2MSB, binary.BigEndian, 0))
}

// dynamicProgram is a program of this architecture that wants a loader that isn't there.
func dynamicProgram() string {
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	const loader = "/lib/no-such-loader.so\x00"
	order := binary.LittleEndian
	out := elfHeader(machine, elf.ELFDATA2LSB, order, 2)
	offset := uint64(len(out) + 2*56)
	for _, p := range []elf.Prog64{
		{Type: uint32(elf.PT_INTERP), Flags: uint32(elf.PF_R), Off: offset, Filesz: uint64(len(loader)), Memsz: uint64(len(loader)), Align: 1},
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: 0x400000, Filesz: offset, Memsz: offset, Align: 0x1000},
	} {
		out, _ = binary.Append(out, order, p)
	}
	return string(append(out, loader...))
}

func elfHeader(machine elf.Machine, data elf.Data, order binary.AppendByteOrder, programs uint16) []byte {
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT),
		Entry: 0x400000, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: programs,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(data), byte(elf.EV_CURRENT)
	out, _ := binary.Append(nil, order.(binary.ByteOrder), h)
	return out
}
