package plan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"syscall"

	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// planSupervision reads the annotations that ask for a supervisor of the seccomp filter.
func (p *Plan) planSupervision() (problems []spec.Complaint) {
	read := func(name string) bool {
		switch value := p.Annotations[name]; value {
		case "true":
			return true
		case "", "false":
		default:
			problems = append(problems, spec.Complaint{Pointer: spec.Join("/annotations", name), Message: strconv.Quote(value) + " is neither true nor false"})
		}
		return false
	}
	p.NameDenials, p.Learn = read(spec.DenialsAnnotation), read(spec.LearnAnnotation)
	return problems
}

// handsOver says what keeps the first process from handing the listener of a filter
// over, which it does when the filter binds it already: it sends it (sendmsg), and
// reads that it may go on. By then a listener answers for a notifying read; before
// the sending there is none, and it would wait for ever.
func handsOver(profile *specs.LinuxSeccomp) string {
	for _, call := range [...]string{"sendmsg", "read"} {
		e, err := seccomp.ExplainSyscall(seccomp.NativeArch(), profile, call)
		if err != nil || len(e.Archs) == 0 {
			continue
		}
		result := e.Archs[0].Result
		if result == "ALLOW" || result == "LOG" || result == "NOTIFY" && call == "read" {
			continue
		}
		return "with SCMP_ACT_NOTIFY " + call + " has to be allowed, by which the listener is handed over; it is answered by " + result
	}
	return ""
}

// Watch has the filter ask a listener about the calls that it refuses. ENOSYS is left to the
// kernel, unless it is the answer to everything: it is what C libraries try first and do without,
// for each process that they make (clone3).
//
// pass is the init's, for a profile that refuses the calls by which the listener is handed over.
func (s *Seccomp) Watch(pass uint64) error {
	watched, err := s.Filter.Watched(notAsked(s.Profile)...)
	if err != nil {
		return err
	}
	// The listener has to be sent with the filter in force, and nothing answers before.
	if handsOver(s.Profile) != "" {
		if watched.Program, err = WithPass(watched.Program, pass); err != nil {
			return err
		}
		s.Pass = pass
	}
	s.Filter, s.Refuses = watched, s.Filter
	return nil
}

// Learn has the filter ask a listener about what it allows, too.
func (s *Seccomp) Learn(pass uint64, killable bool) error {
	learning, err := Learning(s.Profile, killable)
	if err != nil {
		return err
	}
	if learning.Program, err = WithPass(learning.Program, pass); err != nil {
		return err
	}
	s.Filter, s.Refuses, s.Pass, s.Learns = learning, s.Filter, pass, true
	return nil
}

// Unconfined is a profile that allows everything, for what is to be learned of a process that has
// none.
func Unconfined() (*Seccomp, error) {
	profile := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Architectures: seccomp.Default().Architectures}
	filter, err := seccomp.Compile(profile)
	if err != nil {
		return nil, err
	}
	return &Seccomp{Filter: filter, Profile: profile}, nil
}

// notAsked are the errnos that no listener is asked about.
func notAsked(profile *specs.LinuxSeccomp) []syscall.Errno {
	if errno := profile.DefaultErrnoRet; errno != nil && *errno == uint(syscall.ENOSYS) {
		return nil
	}
	return []syscall.Errno{syscall.ENOSYS}
}

// Unasked are the calls that even a filter which asks about everything lets through: those by
// which a thread ends or comes back from a signal's handler. No program can do without them, and
// one of the latter that a signal interrupts while it waits could not go on (the kernel would have
// it fail, sigreturn(2)).
func Unasked() []string {
	return []string{"exit", "exit_group", "restart_syscall", "rt_sigreturn", "sigreturn"}
}

// Learning is the filter of a profile which asks a listener about what the profile allows, and
// about what it refuses by an errno. The rest stays the kernel's to carry out. With killable only
// what ends a process interrupts a call that is looked at (Linux 5.19).
func Learning(profile *specs.LinuxSeccomp, killable bool) (*seccomp.Filter, error) {
	p := *profile
	p.ListenerPath, p.ListenerMetadata = "", ""
	asked := func(action specs.LinuxSeccompAction, errno *uint) (ask bool, err error) {
		switch action {
		case specs.ActAllow, specs.ActLog:
			return true, nil
		case specs.ActErrno:
			return errno == nil || !slices.Contains(notAsked(profile), syscall.Errno(*errno)), nil
		case specs.ActNotify:
			return false, errors.New("the profile uses SCMP_ACT_NOTIFY, and there can be one listener only")
		}
		return false, nil
	}
	ask, err := asked(p.DefaultAction, p.DefaultErrnoRet)
	if err != nil {
		return nil, err
	}
	unasked := Unasked()
	allows := p.DefaultAction == specs.ActAllow || p.DefaultAction == specs.ActLog
	if ask {
		p.DefaultAction, p.DefaultErrnoRet = specs.ActNotify, nil
	}
	var named []string
	p.Syscalls = nil
	for _, rule := range profile.Syscalls {
		ask, err := asked(rule.Action, rule.ErrnoRet)
		if err != nil {
			return nil, err
		}
		named = append(named, rule.Names...)
		if !ask {
			p.Syscalls = append(p.Syscalls, rule)
			continue
		}
		mine := func(name string) bool { return rule.Action != specs.ActErrno && slices.Contains(unasked, name) }
		through, rest := rule, rule
		rest.Names = slices.DeleteFunc(slices.Clone(rule.Names), mine)
		rest.Action, rest.ErrnoRet = specs.ActNotify, nil
		through.Names = slices.DeleteFunc(slices.Clone(rule.Names), func(name string) bool { return !mine(name) })
		for _, r := range [...]specs.LinuxSyscall{through, rest} {
			if len(r.Names) > 0 {
				p.Syscalls = append(p.Syscalls, r)
			}
		}
	}
	if allows {
		unasked = slices.DeleteFunc(unasked, func(name string) bool { return slices.Contains(named, name) })
		if len(unasked) > 0 {
			p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: unasked, Action: specs.ActAllow})
		}
	}
	filter, err := seccomp.Compile(&p)
	if err == nil && killable {
		filter.Flags |= seccomp.FlagWaitKillableRecv
	}
	return filter, err
}

// WithPass lets sendmsg and read through where their sixth argument, which neither has, is the
// pass: a random number that only the process knows which hands the listener over, and that is
// gone with its memory at its execve. No listener is in place yet to answer for the one, and by the
// other the process learns that there is one.
func WithPass(program []seccomp.Instruction, pass uint64) ([]seccomp.Instruction, error) {
	const (
		load, equal, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		number, sixth    = 0, 16 + 8*5 // struct seccomp_data, <linux/seccomp.h>
	)
	var words [8]byte
	binary.NativeEndian.PutUint64(words[:], pass)
	first, second := binary.NativeEndian.Uint32(words[:]), binary.NativeEndian.Uint32(words[4:])
	program = append([]seccomp.Instruction{
		{Code: load, K: number},
		{Code: equal, K: unix.SYS_SENDMSG, Jt: 1},
		{Code: equal, K: unix.SYS_READ, Jf: 5},
		{Code: load, K: sixth},
		{Code: equal, K: first, Jf: 3},
		{Code: load, K: sixth + 4},
		{Code: equal, K: second, Jf: 1},
		{Code: ret, K: unix.SECCOMP_RET_ALLOW},
	}, program...)
	if len(program) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("the profile is too long by %d instructions", len(program)-unix.BPF_MAXINSNS)
	}
	return program, nil
}
