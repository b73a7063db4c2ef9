package seccomp

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// readProfile reads a profile in the form of the spec, or in that of Docker's and Podman's files,
// whose includes and excludes are taken as for a container on amd64 without capabilities.
func readProfile(path string) (*specs.LinuxSeccomp, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	type condition struct{ Arches, Caps []string }
	var file struct {
		specs.LinuxSeccomp
		Syscalls []struct {
			specs.LinuxSyscall
			Includes, Excludes condition
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	p := file.LinuxSeccomp
	for _, s := range file.Syscalls {
		if len(s.Includes.Caps) > 0 || len(s.Includes.Arches) > 0 && s.Includes.Arches[0] != "amd64" {
			continue
		}
		p.Syscalls = append(p.Syscalls, s.LinuxSyscall)
	}
	return &p, nil
}

func asJSON(p *specs.LinuxSeccomp) string {
	data, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return string(data)
}

var (
	randomNames = []string{"read", "write", "openat", "clone", "ioctl", "personality", "socket", "socketcall", "sendto", "ipc", "shmat",
		"semtimedop", "mmap", "mmap2", "prctl", "statx", "clone3", "cachestat", "set_tls", "execveat", "kexec_file_load", "send", "exit"}
	randomOps     = []specs.LinuxSeccompOperator{specs.OpEqualTo, specs.OpNotEqual, specs.OpLessThan, specs.OpLessEqual, specs.OpGreaterEqual, specs.OpGreaterThan, specs.OpMaskedEqual}
	randomActions = []specs.LinuxSeccompAction{specs.ActAllow, specs.ActErrno, specs.ActKill, specs.ActKillProcess, specs.ActTrap, specs.ActTrace, specs.ActLog, specs.ActNotify}
)

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

func randomValue(r *rand.Rand) uint64 {
	switch r.IntN(6) {
	case 0:
		return r.Uint64()
	case 1:
		return pick(r, []uint64{0, 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<32 + 1, 1 << 63, 1<<64 - 1})
	case 2:
		return r.Uint64N(4) << 32
	default:
		return r.Uint64N(16)
	}
}

func ordered(op specs.LinuxSeccompOperator) bool {
	return op != specs.OpEqualTo && op != specs.OpNotEqual && op != specs.OpMaskedEqual
}

// randomProfile makes a right profile. A plain one keeps to what libseccomp can be trusted with:
// all rules with conditions for one call have one action, for its order of rules is its own secret;
// and where there are several they have one condition each and compare for equality only, for it
// joins them to a tree, wrongly at times (with "at most 2³²" and "at most 6" of one argument, 12 is
// refused).
func randomProfile(r *rand.Rand, plain bool) *specs.LinuxSeccomp {
	p := &specs.LinuxSeccomp{DefaultAction: pick(r, randomActions)}
	if p.DefaultAction == specs.ActErrno && r.IntN(2) == 0 {
		errno := uint(38)
		p.DefaultErrnoRet = &errno
	}
	if p.DefaultAction == specs.ActNotify && plain {
		p.DefaultAction = specs.ActAllow
	}
	conditional := map[string]specs.LinuxSyscall{}
	multiplexed := map[string]bool{}
	for range 1 + r.IntN(12) {
		s := specs.LinuxSyscall{Action: pick(r, randomActions)}
		if s.Action == specs.ActErrno || s.Action == specs.ActTrace {
			if r.IntN(2) == 0 {
				errno := uint(r.IntN(4096))
				s.ErrnoRet = &errno
			}
		}
		for range 1 + r.IntN(3) {
			s.Names = append(s.Names, pick(r, randomNames))
		}
		for range r.IntN(4) {
			a := specs.LinuxSeccompArg{Index: uint(r.IntN(6)), Op: pick(r, randomOps), Value: randomValue(r), ValueTwo: randomValue(r)}
			if plain && slices.ContainsFunc(s.Args, func(o specs.LinuxSeccompArg) bool { return o.Index == a.Index && (ordered(a.Op) || ordered(o.Op)) }) {
				continue
			}
			if plain && ordered(a.Op) {
				a.Value |= 1
			}
			s.Args = append(s.Args, a)
		}
		if plain && len(s.Args) > 0 {
			s.Names = s.Names[:1]
			if first, ok := conditional[s.Names[0]]; ok {
				if len(first.Args) > 1 || ordered(first.Args[0].Op) {
					continue
				}
				s.Args = s.Args[:1]
				if ordered(s.Args[0].Op) {
					continue
				}
				s.Action, s.ErrnoRet = first.Action, first.ErrnoRet
			}
			conditional[s.Names[0]] = s
			if s.Names[0] == "socketcall" || s.Names[0] == "ipc" {
				s.Args = nil
			}
		}
		if plain {
			// libseccomp refuses a second rule for such a call with EEXIST.
			s.Names = slices.DeleteFunc(s.Names, func(name string) bool {
				_, sub := subCallOf(name)
				again := multiplexed[name]
				multiplexed[name] = sub || name == "ipc" || name == "socketcall"
				return again
			})
			if len(s.Names) == 0 {
				continue
			}
		}
		p.Syscalls = append(p.Syscalls, s)
	}
	return p
}
