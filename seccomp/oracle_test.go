package seccomp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
	"github.com/berth-runtime/berth/seccomp/internal/sysnum"
)

// libseccomp is the oracle: what it makes of a profile, by way of testdata/oracle.c, is compared with what Compile makes of
// it, for each number and many arguments, by the interpreter. The places where the two are meant to differ are the cases
// of explained(), and no others.
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
		// A fault of libseccomp 2.5: the returns that it repeats for long jumps keep the byte order of this machine.
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

// forgetful tells a fault of libseccomp 2.5: if the call it would look for first is not there on an architecture, its program
// leaves out the load of the number along with it, and compares the architecture with the numbers.
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

// compare runs both filters over every number that could matter, with the given arguments.
func (l libseccomp) compare(t *testing.T, p *specs.LinuxSeccomp, native specs.Arch, mine, theirs []cbpf.Instruction, rounds int, random *rand.Rand, reasons map[string]int) {
	t.Helper()
	list := listedArchs(native, p)
	big := list[0].bigEndian
	values := interesting(p)
	var audits []uint32
	for _, a := range list {
		if !slices.Contains(audits, a.audit) {
			audits = append(audits, a.audit)
		}
	}
	audits = append(audits, 0x12345678) // of nobody
	numbers := numbersToTry(list)
	for _, audit := range audits {
		for _, number := range numbers {
			for range rounds {
				d := cbpf.Data{Number: number, Arch: audit, IP: random.Uint64()}
				for i := range d.Args {
					if i == 0 && number%1000 < 120 && random.IntN(4) > 0 {
						d.Args[i] = random.Uint64N(32) // the numbers of socketcall and ipc
						continue
					}
					d.Args[i] = values[random.IntN(len(values))]
					switch random.IntN(8) {
					case 0:
						d.Args[i]++
					case 1:
						d.Args[i]--
					case 2:
						d.Args[i] = random.Uint64()
					case 3:
						d.Args[i] ^= 1 << random.IntN(64)
					case 4:
						d.Args[i] = random.Uint64N(32)
					}
				}
				m, _ := cbpf.Run(mine, &d, big)
				o, _ := cbpf.Run(theirs, &d, big)
				if m == o {
					continue
				}
				reason := l.explained(p, list, &d, m, o)
				if reason == "" {
					t.Fatalf("arch %#x number %d (%#x) args %#x: %s, by libseccomp %s", audit, number, number, d.Args, describe(m), describe(o))
				}
				reasons[reason]++
			}
		}
	}
}

func interesting(p *specs.LinuxSeccomp) []uint64 {
	values := []uint64{0, 1, 0xffffffff, 1 << 32, 1<<64 - 1}
	for _, s := range p.Syscalls {
		for _, a := range s.Args {
			values = append(values, a.Value, a.ValueTwo)
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// numbersToTry is each number about where the architectures have calls, and some elsewhere.
func numbersToTry(list []*arch) []uint32 {
	var numbers []uint32
	for _, base := range []uint32{0, 4000, 5000, 6000, x32Bit, 0xf0000, 0xfffffe00} {
		step := uint32(41)
		for _, a := range list {
			if read, _ := a.table.NumberOf("read"); read >= base && read < base+100 || a.name == specs.ArchARM && base == 0xf0000 {
				step = 1
			}
		}
		for n := uint32(0); n < 600 && base+n >= base; n += step {
			numbers = append(numbers, base+n)
		}
	}
	return append(numbers, 10000, 0x7fffffff, 0x80000000, x32Bit-1, 0xf0000-1, 1<<32-1)
}

func TestOracleDefaultProfiles(t *testing.T) {
	l := oracle(t)
	profiles := map[string]*specs.LinuxSeccomp{"ours": Default(), "ours with CAP_SYS_ADMIN": Default("CAP_SYS_ADMIN")}
	if p, err := readProfile("/usr/share/containers/seccomp.json"); err == nil {
		profiles["Podman's"] = p
	} else if !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/profiles/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		p, err := readProfile(file)
		if err != nil {
			t.Fatal(err)
		}
		profiles[filepath.Base(file)] = p
	}
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		p := profiles[name]
		t.Run(name, func(t *testing.T) {
			for i := range archs {
				a := &archs[i]
				if !oracleKnows(a) {
					continue
				}
				p := *p
				p.Architectures = kin(a.name)
				f, err := CompileFor(a.name, &p)
				if err != nil {
					t.Fatal(err)
				}
				if err := cbpf.Check(f.Program); err != nil {
					t.Fatal(err)
				}
				theirs := l.filter(t, a.name, &p)
				reasons := map[string]int{}
				rounds := 1
				if a.name == specs.ArchX86_64 {
					rounds = 4
				}
				l.compare(t, &p, a.name, f.Program, theirs, rounds, rand.New(rand.NewPCG(1, uint64(i))), reasons)
				if a.name == specs.ArchX86_64 {
					report(t, f.Program, theirs, reasons)
				}
			}
		})
	}
}

// report logs how the two filters compare in length and in speed, for the calls that programs make most.
func report(t *testing.T, mine, theirs []cbpf.Instruction, reasons map[string]int) {
	t.Logf("%d instructions, libseccomp %d; explained differences: %v", len(mine), len(theirs), reasons)
	for _, name := range []string{"read", "write", "close", "futex", "mmap", "openat", "epoll_wait", "recvfrom", "clock_gettime", "exit_group", "socket", "clone"} {
		nr, _ := SyscallNumber(specs.ArchX86_64, name)
		d := cbpf.Data{Number: nr, Arch: 62 | audit64 | auditLE, Args: [6]uint64{1, 1}}
		value, m := cbpf.Run(mine, &d, false)
		_, l := cbpf.Run(theirs, &d, false)
		t.Logf("%-14s %-12s %2d instructions, libseccomp %3d", name, describe(value), m, l)
	}
}

// TestOracleRandomProfiles has rules of all kinds for a few calls, on all architectures.
func TestOracleRandomProfiles(t *testing.T) {
	l := oracle(t)
	reasons, faulty := map[string]int{}, 0
	rounds := 300
	if testing.Short() {
		rounds = 20
	}
	for i := range rounds {
		random := rand.New(rand.NewPCG(7, uint64(i)))
		a := &archs[random.IntN(len(archs))]
		if !oracleKnows(a) {
			continue
		}
		p := randomProfile(random, true)
		p.Architectures = kin(a.name)
		if random.IntN(2) == 0 {
			p.Architectures = nil
		}
		f, err := CompileFor(a.name, p)
		if err != nil {
			t.Fatal(err)
		}
		theirs := l.filter(t, a.name, p)
		if forgetful(theirs) {
			faulty++
			continue
		}
		if !t.Run(fmt.Sprintf("%d-%s", i, a.name), func(t *testing.T) {
			l.compare(t, p, a.name, f.Program, theirs, 3, random, reasons)
		}) {
			t.Logf("profile: %s", asJSON(p))
		}
	}
	t.Logf("%d of %d filters of libseccomp don't look at the number of the call and were left out", faulty, rounds)
	if faulty > rounds/4 {
		t.Error("too few filters were compared")
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		t.Logf("%8d times: %s", reasons[reason], reason)
	}
}

// TestOracleNumbers compares the tables.
func TestOracleNumbers(t *testing.T) {
	l := oracle(t)
	for i := range archs {
		a := &archs[i]
		if !oracleKnows(a) {
			continue
		}
		for name := range sysnum.Names {
			theirs := l.numbers[oracleToken(a)][name]
			nr, ok := SyscallNumber(a.name, name)
			switch {
			case ok && int(int32(nr)) == theirs, !ok && theirs < 0:
			case ok && theirs == -1: // newer than that libseccomp
			case ok && theirs < 0 && theirs > -300: // it prefers its pseudo number, for a call behind a multiplexer
			case a.name == specs.ArchX86_64 && name == "map_shadow_stack", a.name == specs.ArchX32 && name == "map_shadow_stack":
			case a.name == specs.ArchPARISC64 && name == "_llseek": // libseccomp has one table for both
			default:
				t.Errorf("%s %s: %d (%v), libseccomp %d", a.name, name, nr, ok, theirs)
			}
		}
	}
}
