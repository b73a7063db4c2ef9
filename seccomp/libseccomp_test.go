package seccomp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
	"github.com/berth-runtime/berth/seccomp/internal/sysnum"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// libseccomp is the oracle: what it makes of a profile, by way of testdata/oracle.c, is compared
// with what Compile makes of it, for each number and many arguments, by the interpreter. The places
// where the two are meant to differ are the cases of explained(), and no others.
type libseccomp struct {
	program string
	numbers map[uint32]map[string]int // by architecture and name; negative: there is none, -1: the name is unknown
}

func oracle(t testing.TB) libseccomp {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not installed, so there is no libseccomp to compare with")
	}
	program := filepath.Join(t.TempDir(), "oracle")
	if out, err := exec.Command(gcc, "-O1", "-o", program, "testdata/oracle.c", "-lseccomp").CombinedOutput(); err != nil {
		if bytes.Contains(out, []byte("seccomp.h")) || bytes.Contains(out, []byte("-lseccomp")) {
			t.Skip("libseccomp-dev is not installed, so there is nothing to compare with")
		}
		t.Fatalf("gcc: %v\n%s", err, out)
	}
	l := libseccomp{program, map[uint32]map[string]int{}}
	var input strings.Builder
	all := slices.Collect(sysnum.Names)
	for i := range archs {
		for _, name := range all {
			fmt.Fprintf(&input, "name %#x %s\n", oracleToken(&archs[i]), name)
		}
	}
	answers := strings.Fields(string(l.run(t, input.String())))
	for i := range archs {
		m := map[string]int{}
		for j, name := range all {
			number, err := strconv.Atoi(answers[i*len(all)+j])
			if err != nil {
				t.Fatal(err)
			}
			m[name] = number
		}
		l.numbers[oracleToken(&archs[i])] = m
	}
	return l
}

func (l libseccomp) run(t testing.TB, input string) []byte {
	t.Helper()
	cmd := exec.Command(l.program)
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("oracle: %v\n%s\n%s", err, &stderr, input)
	}
	return out
}

// oracleToken is SCMP_ARCH_* of <seccomp.h>: AUDIT_ARCH_*, but for x32, whose own it makes up.
func oracleToken(a *arch) uint32 {
	if a.name == specs.ArchX32 {
		return 62 | auditLE
	}
	return a.audit
}

// oracleKnows says whether libseccomp 2.5 has the architecture.
func oracleKnows(a *arch) bool {
	switch a.family {
	case familyLoongArch, familyM68K, familySH, familySHEB:
		return false
	}
	return true
}

// oracleOps is enum scmp_compare, in our order.
var oracleOps = map[specs.LinuxSeccompOperator]int{
	specs.OpNotEqual: 1, specs.OpLessThan: 2, specs.OpLessEqual: 3, specs.OpEqualTo: 4,
	specs.OpGreaterEqual: 5, specs.OpGreaterThan: 6, specs.OpMaskedEqual: 7,
}

// filter has libseccomp compile a profile, in the way that runc hands it over.
func (l libseccomp) filter(t testing.TB, native specs.Arch, p *specs.LinuxSeccomp) []cbpf.Instruction {
	t.Helper()
	value := func(action specs.LinuxSeccompAction, errno *uint) uint32 {
		v, err := checkAction("", string(action), errno, "")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	var b strings.Builder
	fallback := value(p.DefaultAction, p.DefaultErrnoRet)
	fmt.Fprintf(&b, "default %#x\n", fallback)
	results := []uint32{fallback, retKillThread}
	main := archByName(native)
	for _, a := range listedArchs(native, p) {
		fmt.Fprintf(&b, "arch %#x\n", oracleToken(a))
	}
	for _, s := range p.Syscalls {
		action := value(s.Action, s.ErrnoRet)
		if action == fallback {
			continue
		}
		results = append(results, action)
		indexes := map[uint]bool{}
		for _, a := range s.Args {
			indexes[a.Index] = true
		}
		for _, name := range s.Names {
			one := func(args ...specs.LinuxSeccompArg) {
				fmt.Fprintf(&b, "rule %#x %s %d", action, name, len(args))
				for _, a := range args {
					fmt.Fprintf(&b, " %d %d %#x %#x", a.Index, oracleOps[a.Op], a.Value, a.ValueTwo)
				}
				b.WriteString("\n")
			}
			if len(indexes) == len(s.Args) {
				one(s.Args...)
				continue
			}
			for _, a := range s.Args {
				one(a)
			}
		}
	}
	out := l.run(t, b.String())
	var order binary.ByteOrder = binary.LittleEndian
	if main.bigEndian {
		order = binary.BigEndian
	}
	program := make([]cbpf.Instruction, 0, len(out)/8)
	for ; len(out) >= 8; out = out[8:] {
		program = append(program, cbpf.Instruction{Code: order.Uint16(out), Jt: out[2], Jf: out[3], K: order.Uint32(out[4:])})
	}
	for i := range program {
		// A fault of libseccomp 2.5: the returns that it repeats for long jumps keep the byte order
		// of this machine.
		ins := &program[i]
		if swapped := bits.ReverseBytes32(ins.K); ins.Code == cbpf.Return && !slices.Contains(results, ins.K) && slices.Contains(results, swapped) {
			ins.K = swapped
		}
	}
	if err := cbpf.Check(program); err != nil {
		t.Fatalf("libseccomp's own program: %v", err)
	}
	return program
}

// forgetful tells a fault of libseccomp 2.5: if the call it would look for first is not there on an
// architecture, its program leaves out the load of the number along with it, and compares the
// architecture with the numbers.
func forgetful(program []cbpf.Instruction) bool {
	for i, ins := range program[:len(program)-1] {
		if i > 0 && ins.Code == cbpf.JumpEqual && program[i-1].Code == cbpf.LoadWord && program[i-1].K == cbpf.OffsetArch {
			return program[i+1].Code != cbpf.LoadWord && program[i+1].Code != cbpf.Return
		}
	}
	return false
}

func listedArchs(native specs.Arch, p *specs.LinuxSeccomp) []*arch {
	list := []*arch{archByName(native)}
	for _, name := range p.Architectures {
		if a := archByName(name); a.family == list[0].family && !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// explained names the reason why a call may be answered otherwise than by libseccomp, or is empty.
func (l libseccomp) explained(p *specs.LinuxSeccomp, list []*arch, d *cbpf.Data, mine, theirs uint32) string {
	fallback, _ := checkAction("", string(p.DefaultAction), p.DefaultErrnoRet, "")
	var a *arch
	for _, one := range list {
		if one.audit == d.Arch && (one.name == specs.ArchX32) == (one.audit == 62|audit64|auditLE && d.Number >= x32Bit) {
			a = one
		}
	}
	enosys := uint32(retErrno | 38)
	switch list[0].family {
	case familyMIPS, familyMIPSEL:
		enosys = retErrno | 89
	case familyPARISC:
		enosys = retErrno | 251
	}
	if a == nil {
		switch {
		case mine == retKillProcess && theirs == retKillThread:
			return "another architecture: the process is killed, not the thread"
		case mine == enosys && denies(fallback) && d.Arch == 62|audit64|auditLE:
			return "a call of x32, that isn't listed: ENOSYS"
		case mine == retKillProcess && int32(d.Number) < -100 && int32(d.Number) > -300:
			return "libseccomp puts its pseudo numbers into the filter"
		}
		return ""
	}
	newest, known := uint32(0), false
	for _, s := range p.Syscalls {
		for _, name := range s.Names {
			nr, ok := SyscallNumber(a.name, name)
			if ok && (a.name != specs.ArchARM || nr < 0xf0000) && (a.name != specs.ArchX32 || nr&0xfff < 512 || nr&0xfff > 547) {
				newest, known = max(newest, nr), true
			}
		}
	}
	if mine == enosys && known && d.Number > newest && denies(fallback) {
		if theirs == fallback {
			return "newer than the profile: ENOSYS"
		}
		if int32(d.Number) < 0 {
			return "libseccomp puts its pseudo numbers into the filter"
		}
	}
	name, _ := a.table.NameOf(d.Number)
	switch {
	case a.name == specs.ArchPARISC64 && d.Number == 140:
		return "_llseek, that 64-bit PA-RISC doesn't have and libseccomp takes from the 32-bit table"
	case name != "" && l.numbers[oracleToken(a)][name] < 0 && l.numbers[oracleToken(a)][name]/100 != -1 && l.numbers[oracleToken(a)][name]/100 != -2:
		return "a call that this libseccomp doesn't know there"
	case int32(d.Number) < -100 && int32(d.Number) > -300 && mine == fallback:
		return "libseccomp puts its pseudo numbers into the filter"
	case name == "ipc" && uint32(d.Args[0])>>16 != 0:
		return "ipc with a version in its first argument"
	case name == "ipc" || name == "socketcall":
		for _, s := range p.Syscalls {
			for _, n := range s.Names {
				if sub, ok := subCallOf(n); ok && sub.viaIPC == (name == "ipc") && uint64(sub.number) == d.Args[0]&0xffff && len(s.Args) > 0 {
					if stricter(mine, theirs) == mine {
						return "conditions that a multiplexer can't check"
					}
				}
			}
		}
	}
	if !a.wide {
		for _, s := range p.Syscalls {
			for _, arg := range s.Args {
				switch arg.Op {
				case specs.OpLessThan, specs.OpLessEqual, specs.OpGreaterThan, specs.OpGreaterEqual:
					if arg.Value>>32 != 0 && slices.Contains(s.Names, name) {
						return "order against more than 32 bits, on an architecture of 32"
					}
				}
			}
		}
	}
	return ""
}
