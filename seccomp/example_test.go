package seccomp_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"runtime"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/seccomp"
)

func ExampleCompile() {
	profile := &specs.LinuxSeccomp{
		DefaultAction: specs.ActAllow,
		Syscalls: []specs.LinuxSyscall{
			{Names: []string{"mount", "umount2"}, Action: specs.ActErrno},
			{Names: []string{"clone"}, Action: "SCMP_ACT_DENY"},
		},
	}
	_, err := seccomp.Compile(profile)
	var wrong *seccomp.ProfileError
	if errors.As(err, &wrong) {
		fmt.Println(wrong.Pointer)
	}

	profile.Syscalls[1].Action = specs.ActKillProcess
	filter, err := seccomp.Compile(profile)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(filter.Bytes()) == 8*len(filter.Program), filter.Notify)
	// Output:
	// /syscalls/1/action
	// true false
}

// A program that gets by without network starts under a filter, and this process stays as it is.
func ExampleFilter_Start() {
	// There are two ways to mount: mount(8) of util-linux 2.39 and later goes by move_mount(2).
	filter, err := seccomp.Compile(seccomp.AllowAllBut("socket", "ptrace", "mount", "move_mount"))
	if err != nil {
		log.Fatal(err)
	}
	if len(filter.Unknown) > 0 {
		log.Fatalf("no such system calls: %v", filter.Unknown)
	}
	cmd := exec.Command("sh", "-c", "grep Seccomp: /proc/self/status; mount -t tmpfs none /mnt 2> /dev/null || echo refused")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := filter.Start(cmd); err != nil {
		log.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// Seccomp:	2
	// refused
}

func ExampleExplainSyscall() {
	e, err := seccomp.ExplainSyscall(specs.ArchX86_64, seccomp.Default(), "personality")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(e.Archs[0].Number, e.Archs[0].Rules[0].Result, e.Archs[0].Rules[0].Conditions, "else", e.Archs[0].Result)
	// Output: 135 ALLOW [arg0 == 0] else ERRNO EPERM
}

func ExampleSyscallNumber() {
	for _, arch := range []specs.Arch{specs.ArchX86_64, specs.ArchAARCH64, specs.ArchMIPS64} {
		number, _ := seccomp.SyscallNumber(arch, "openat")
		fmt.Println(arch, number)
	}
	// Output:
	// SCMP_ARCH_X86_64 257
	// SCMP_ARCH_AARCH64 56
	// SCMP_ARCH_MIPS64 5247
}

// What would become of calls is known before the filter is loaded.
func ExampleFilter_Decide() {
	filter, err := seccomp.CompileFor(specs.ArchX86_64, seccomp.Default())
	if err != nil {
		log.Fatal(err)
	}
	for _, flags := range []uint64{unix.CLONE_VFORK, unix.CLONE_NEWUSER} {
		action, errno, _ := filter.Decide("clone", flags)
		fmt.Println(action, errno)
	}
	// Output:
	// SCMP_ACT_ALLOW 0
	// SCMP_ACT_ERRNO 1
}

// A server that needs no new programs and no debugging gives up the right to them, for all of its
// threads.
func ExampleInstall() {
	profile := seccomp.Default()
	profile.Syscalls = append([]specs.LinuxSyscall{
		{Names: []string{"execve", "execveat", "ptrace"}, Action: specs.ActKillProcess},
	}, profile.Syscalls...)
	if err := seccomp.Install(profile); err != nil {
		log.Fatal(err)
	}
}

// A supervisor sees which directories a program makes, and lets it.
func ExampleNotify() {
	filter, err := seccomp.Compile(&specs.LinuxSeccomp{
		DefaultAction: specs.ActAllow,
		Syscalls:      []specs.LinuxSyscall{{Names: []string{"mkdir"}, Action: specs.ActNotify}},
	})
	if err != nil {
		log.Fatal(err)
	}
	listeners := make(chan int)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread, and with it the filter, ends
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			log.Fatal(err)
		}
		listener, err := filter.Load()
		if err != nil {
			log.Fatal(err)
		}
		listeners <- listener
		if err := exec.Command("mkdir", "-p", "/tmp/a/b").Run(); err != nil {
			log.Print(err)
		}
	}()
	listener, err := seccomp.Notify(<-listeners)
	if err != nil {
		log.Fatal(err)
	}
	defer listener.Close()
	for {
		call, err := listener.Receive()
		if err == io.EOF {
			return // all processes with the filter have ended
		}
		if err != nil {
			log.Fatal(err)
		}
		path, err := call.ReadString(call.Args[0], unix.PathMax)
		if err == nil {
			fmt.Println(call, path, "by", call.Thread)
			err = call.Continue()
		}
		if err != nil && !errors.Is(err, seccomp.ErrGone) {
			log.Fatal(err)
		}
	}
}
