package seccomp

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
	"github.com/berth-runtime/berth/seccomp/internal/sysnum"
	"github.com/opencontainers/runtime-spec/specs-go"
)

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

// report logs how the two filters compare in length and in speed, for the calls that programs make
// most.
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
