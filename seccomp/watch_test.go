package seccomp

import (
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

// What Rules.Decide says of a call is what the filter does with it.
func TestRuleIsWhatTheFilterDoes(t *testing.T) {
	rounds := 400
	if testing.Short() {
		rounds = 40
	}
	results := map[string]int{}
	for i := range rounds {
		r := rand.New(rand.NewPCG(23, uint64(i)))
		p := randomProfile(r, false)
		p.Architectures = kin(NativeArch())[:1+r.IntN(len(kin(NativeArch())))]
		f, err := Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		rules, err := RulesOf(p)
		if err != nil {
			t.Fatal(err)
		}
		values := interesting(p)
		for range 200 {
			a := archByName(pick(r, kin(NativeArch())))
			c := &Call{Arch: a.name, Number: uint32(r.IntN(500))}
			if s := p.Syscalls; len(s) > 0 && r.IntN(4) > 0 {
				if nr, ok := a.table.NumberOf(pick(r, pick(r, s).Names)); ok {
					c.Number = nr
				}
			}
			if a.name == specs.ArchX32 {
				c.Number |= x32Bit
			}
			for i := range c.Args {
				c.Args[i] = pick(r, values) + uint64(r.IntN(3)) - 1
			}
			value, _ := cbpf.Run(f.Program, &cbpf.Data{Number: c.Number, Arch: a.audit, Args: c.Args}, a.bigEndian)
			at, result := rules.Decide(c)
			if result != describe(value) {
				t.Fatalf("%s %d %#x: Decide says %s by %s, the filter %s\n%s", c.Arch, c.Number, c.Args, result, at, describe(value), asJSON(p))
			}
			if action, data := f.Verdict(c); action != actionOf(value) || uint32(data) != value&retData {
				t.Fatalf("Verdict says %s %d, the filter %s", action, data, describe(value))
			}
			results[strings.TrimRight(at, "0123456789")]++
		}
	}
	for _, at := range []string{"/syscalls/", "/defaultAction", "/architectures"} {
		if results[at] == 0 && (at != "/architectures" || len(kin(NativeArch())) > 1) {
			t.Errorf("none was decided by %s: %v", at, results)
		}
	}
}

// A watched filter lets nothing through that the filter doesn't, and asks about nothing but errnos.
func TestWatchedIsNoLooser(t *testing.T) {
	profile := Default()
	profile.Syscalls = append(profile.Syscalls, specs.LinuxSyscall{Names: []string{"kexec_load"}, Action: specs.ActKillProcess})
	profile.Flags = []specs.LinuxSeccompFlag{flagTSync}
	f, err := Compile(profile)
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Watched()
	if err != nil {
		t.Fatal(err)
	}
	if !w.Notify || w.Flags != f.Flags|FlagNewListener|FlagTSyncESRCH || f.Notify {
		t.Errorf("%+v of %+v", w.Flags, f.Flags)
	}
	if len(w.Program) != len(f.Program) {
		t.Fatalf("%d instructions of %d", len(w.Program), len(f.Program))
	}
	changed := 0
	for i, ins := range f.Program {
		got := w.Program[i]
		if ins.Code == cbpf.Return && ins.K&retActionFull == retErrno {
			ins.K = retUserNotif
			changed++
		}
		if got != ins {
			t.Errorf("instruction %d is %v, want %v", i, got, ins)
		}
	}
	if changed == 0 {
		t.Error("nothing is watched")
	}
	quiet, err := f.Watched(unix.ENOSYS)
	if err != nil {
		t.Fatal(err)
	}
	for i, ins := range f.Program {
		asks := quiet.Program[i] != ins
		if want := ins.Code == cbpf.Return && ins.K&retActionFull == retErrno && ins.K&retData != uint32(unix.ENOSYS); asks != want {
			t.Errorf("without ENOSYS: instruction %d, %v, becomes %v", i, ins, quiet.Program[i])
		}
	}
	if _, err := w.Watched(); err == nil {
		t.Error("what notifies is watched")
	}
}

// In the kernel, a refused call is the listener's to answer, with what the profile says.
func TestWatchedAnswers(t *testing.T) {
	needKernel(t)
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"getppid"}, Action: specs.ActErrno, ErrnoRet: uintp(95), Args: []specs.LinuxSeccompArg{{Index: 0, Value: 7, Op: specs.OpEqualTo}}},
	}}
	f, err := Compile(p)
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Watched()
	if err != nil {
		t.Fatal(err)
	}
	rules, err := RulesOf(p)
	if err != nil {
		t.Fatal(err)
	}
	parent := os.Getppid()
	err = onFilteredThread(w, func(fd int) error {
		l, err := Notify(fd)
		if err != nil {
			return err
		}
		told := make(chan error, 1)
		go func() {
			c, err := l.Receive()
			if err == nil {
				action, errno := f.Verdict(c)
				at, result := rules.Decide(c)
				if action != specs.ActErrno || errno != 95 || at != "/syscalls/0" || result != "ERRNO ENOTSUP" {
					t.Errorf("%s: %s %d by %s: %s", c, action, errno, at, result)
				}
				err = c.Fail(unix.Errno(errno))
			}
			told <- err
		}()
		r, errno := waiting(unix.SYS_GETPPID, 8)
		if int(r) != parent || errno != 0 {
			return errors.New("the call that is allowed waits for an answer")
		}
		if _, errno := waiting(unix.SYS_GETPPID, 7); errno != 95 {
			t.Errorf("the call that is refused: %v", errno)
		}
		if err := errors.Join(<-told, l.Close()); err != nil {
			return err
		}
		// Without a supervisor it is refused by another errno, and not let through.
		if _, errno := waiting(unix.SYS_GETPPID, 7); errno != unix.ENOSYS {
			t.Errorf("the call that is refused, with the listener closed: %v", errno)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
