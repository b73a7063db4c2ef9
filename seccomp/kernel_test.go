package seccomp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

// The kernel is asked by real calls. A filter that lets Go's runtime live is loaded on a thread of
// this process, which ends with its goroutine; one that may kill, in a process of its own.

// probed says whether this process may load filters at all.
var probed = sync.OnceValue(func() error {
	return onThread(&specs.LinuxSeccomp{DefaultAction: specs.ActAllow}, func(int) error { return nil })
})

func needKernel(t testing.TB) {
	t.Helper()
	if err := probed(); err != nil {
		t.Skipf("no filters can be loaded here: %v", err)
	}
}

func load(f *Filter) (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	return f.Load()
}

// onThread runs a function on a thread of its own, under the profile.
func onThread(p *specs.LinuxSeccomp, do func(listener int) error) error {
	f, err := Compile(p)
	if err != nil {
		return err
	}
	return onFilteredThread(f, do)
}

func onFilteredThread(f *Filter, do func(listener int) error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		listener, err := load(f)
		if err == nil {
			err = do(listener)
		}
		result <- err
	}()
	return <-result
}

// try makes a call, with nothing of Go's runtime in between.
func try(number uintptr, args ...uint64) (uintptr, syscall.Errno) {
	var a [6]uintptr
	for i, v := range args {
		a[i] = uintptr(v)
	}
	r, _, errno := syscall.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	return r, errno
}

func uintp(v uint) *uint { return &v }

func TestKernelErrno(t *testing.T) {
	needKernel(t)
	for _, test := range []struct {
		name  string
		errno *uint
		want  syscall.Errno
	}{
		{"default", nil, syscall.EPERM},
		{"ENOSYS", uintp(uint(syscall.ENOSYS)), syscall.ENOSYS},
		// Go's syscall package takes 4095 for no error.
		{"great", uintp(maxErrno - 1), maxErrno - 1},
		{"none", uintp(0), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{
				{Names: []string{"getppid"}, Action: specs.ActErrno, ErrnoRet: test.errno},
			}}
			err := onThread(p, func(int) error {
				if r, errno := try(unix.SYS_GETPPID); errno != test.want || test.want == 0 && r != 0 {
					return fmt.Errorf("getppid: %d, errno %d, want errno %d", r, errno, test.want)
				}
				if r, errno := try(unix.SYS_GETPID); int(r) != os.Getpid() || errno != 0 {
					return fmt.Errorf("getpid, that no rule is for: %d, errno %d", r, errno)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestKernelConditions compares the kernel with the interpreter. getpid and getppid take no
// arguments, and so let any be given.
func TestKernelConditions(t *testing.T) {
	needKernel(t)
	a := archByName(NativeArch())
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	matched := 0
	for i := range rounds {
		r := rand.New(rand.NewPCG(17, uint64(i)))
		p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow}
		for range 1 + r.IntN(6) {
			s := specs.LinuxSyscall{Names: []string{pick(r, []string{"getpid", "getppid"})}, Action: specs.ActErrno, ErrnoRet: uintp(uint(1 + r.IntN(4000)))}
			for range 1 + r.IntN(3) {
				s.Args = append(s.Args, specs.LinuxSeccompArg{Index: uint(r.IntN(6)), Op: pick(r, randomOps), Value: randomValue(r), ValueTwo: randomValue(r)})
			}
			p.Syscalls = append(p.Syscalls, s)
		}
		f, err := Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		values := interesting(p)
		err = onThread(p, func(int) error {
			for range 300 {
				d := cbpf.Data{Number: unix.SYS_GETPID, Arch: a.audit}
				if r.IntN(2) == 0 {
					d.Number = unix.SYS_GETPPID
				}
				for i := range d.Args {
					d.Args[i] = pick(r, values) + uint64(r.IntN(3)) - 1
					if !a.wide {
						d.Args[i] &= 0xffffffff
					}
				}
				_, errno := try(uintptr(d.Number), d.Args[:]...)
				want := syscall.Errno(0)
				if value, _ := cbpf.Run(f.Program, &d, a.bigEndian); value != retAllow {
					want = syscall.Errno(value & retData)
					matched++
				}
				if errno != want {
					return fmt.Errorf("number %d args %#x: errno %d, want %d\n%s", d.Number, d.Args, errno, want, asJSON(p))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if matched == 0 {
		t.Error("no rule ever applied")
	}
}

// TestKernelTakesFilters hands the kernel filters of all kinds. Three instructions in front answer
// before them, so that they do nothing; the kernel checks the whole program nevertheless.
func TestKernelTakesFilters(t *testing.T) {
	needKernel(t)
	bypass := []cbpf.Instruction{
		{Code: cbpf.LoadWord, K: cbpf.OffsetArch},
		{Code: cbpf.JumpEqual, K: 0, Jt: 1},
		{Code: cbpf.Return, K: retAllow},
	}
	take := func(program []cbpf.Instruction) error {
		result := make(chan error)
		go func() {
			runtime.LockOSThread()
			f := Filter{Program: append(slices.Clone(bypass), program...), bigEndian: archByName(NativeArch()).bigEndian}
			_, err := load(&f)
			result <- err
		}()
		return <-result
	}
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	for i := range rounds {
		r := rand.New(rand.NewPCG(19, uint64(i)))
		p := randomProfile(r, false)
		native := pick(r, archs[:]).name
		p.Architectures = kin(native)
		f, err := CompileFor(native, p)
		if err != nil {
			t.Fatal(err)
		}
		if err := take(f.Program); err != nil {
			t.Fatalf("%v\n%s", err, asJSON(p))
		}
	}
	for i := range archs {
		p := Default()
		p.Architectures = kin(archs[i].name)
		f, err := CompileFor(archs[i].name, p)
		if err != nil {
			t.Fatal(err)
		}
		if err := take(f.Program); err != nil {
			t.Errorf("our profile on %s: %v", archs[i].name, err)
		}
	}
	// The check is one: what our own checker refuses, the kernel does too.
	for _, bad := range [][]cbpf.Instruction{
		{{Code: cbpf.LoadWord, K: 64}, {Code: cbpf.Return}},
		{{Code: cbpf.LoadWord, K: 2}, {Code: cbpf.Return}},
		{{Code: cbpf.JumpEqual, Jt: 1}, {Code: cbpf.Return}},
		{{Code: cbpf.Jump, K: 1}, {Code: cbpf.Return}},
		{{Code: cbpf.LoadWord}},
		{{Code: 0x28}, {Code: cbpf.Return}},
	} {
		if cbpf.Check(bad) == nil {
			t.Errorf("%v is accepted by the checker", bad)
		}
		if take(bad) == nil {
			t.Errorf("%v is accepted by the kernel", bad)
		}
	}
}

func TestKernelNotify(t *testing.T) {
	needKernel(t)
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"getppid"}, Action: specs.ActNotify}}}
	err := onThread(p, func(listener int) error {
		if listener < 0 {
			return errors.New("no listener")
		}
		if flags, err := unix.FcntlInt(uintptr(listener), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			return fmt.Errorf("the listener is not close-on-exec: %#x, %v", flags, err)
		}
		if link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", listener)); err != nil || link != "anon_inode:seccomp notify" {
			return fmt.Errorf("the listener is %q, %v", link, err)
		}
		// Another thread sees that a call waits, and closes the listener without an answer.
		seen := make(chan error, 1)
		go func() {
			_, err := unix.Poll([]unix.PollFd{{Fd: int32(listener), Events: unix.POLLIN}}, -1)
			seen <- errors.Join(err, unix.Close(listener))
		}()
		// Go has to know that this call waits, or with one processor, or when the garbage
		// collector stops the world, the other thread would never get to run.
		if _, _, errno := syscall.Syscall(unix.SYS_GETPPID, 0, 0, 0); errno != unix.ENOSYS {
			return fmt.Errorf("getppid, whose listener went away: errno %d", errno)
		}
		return <-seen
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Run("second listener", func(t *testing.T) {
		f, err := Compile(p)
		if err != nil {
			t.Fatal(err)
		}
		err = onThread(p, func(listener int) error {
			defer unix.Close(listener)
			if _, err := f.Load(); !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "one only") {
				return fmt.Errorf("a second listener: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

func TestKernelNotifyFlags(t *testing.T) {
	needKernel(t)
	if !sys.SeccompFlagsKnown(FlagWaitKillableRecv | FlagNewListener) {
		t.Skip("SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV needs Linux 5.19")
	}
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"getppid"}, Action: specs.ActNotify}},
		Flags: []specs.LinuxSeccompFlag{specs.LinuxSeccompFlagWaitKillableRecv, specs.LinuxSeccompFlagLog, specs.LinuxSeccompFlagSpecAllow}}
	if err := onThread(p, func(listener int) error { return unix.Close(listener) }); err != nil {
		t.Fatal(err)
	}
	// Without a call that notifies, the kernel would refuse the flag.
	p.Syscalls = nil
	if err := onThread(p, func(int) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestKernelLogAndTrace(t *testing.T) {
	needKernel(t)
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"getppid"}, Action: specs.ActLog},
		{Names: []string{"getuid"}, Action: specs.ActTrace},
	}}
	err := onThread(p, func(int) error {
		if r, errno := try(unix.SYS_GETPPID); int(r) != os.Getppid() || errno != 0 {
			return fmt.Errorf("a logged call: %d, errno %d", r, errno)
		}
		if _, errno := try(unix.SYS_GETUID); errno != unix.ENOSYS {
			return fmt.Errorf("a traced call without a tracer: errno %d", errno)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
