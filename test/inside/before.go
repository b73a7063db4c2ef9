package main

import (
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// without runs a program on what looks like an older kernel: of the calls that the first word
// names, each answers as one that is not there. It stands before the engine, not inside a
// container.
//
//	inside without mount_setattr,close_range_cloexec PROGRAM ARGUMENT…
func without(words []string) {
	const load, equal, set, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	// Offsets in struct seccomp_data: the number, and the low half of the third argument.
	const number, flags = 0, 16 + 2*8
	filter := []unix.SockFilter{{Code: load, K: number}}
	for _, name := range strings.Split(words[0], ",") {
		switch name {
		case "mount_setattr": // Linux before 5.12
			filter = append(filter, unix.SockFilter{Code: equal, K: unix.SYS_MOUNT_SETATTR, Jf: 1},
				unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)})
		case "close_range_cloexec": // Linux before 5.11
			filter = append(filter, unix.SockFilter{Code: equal, K: unix.SYS_CLOSE_RANGE, Jf: 4},
				unix.SockFilter{Code: load, K: flags},
				unix.SockFilter{Code: set, K: unix.CLOSE_RANGE_CLOEXEC, Jf: 1},
				unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)},
				unix.SockFilter{Code: load, K: number})
		case "open_tree_namespace": // Linux before 7.0
			filter = append(filter, unix.SockFilter{Code: equal, K: unix.SYS_OPEN_TREE, Jf: 4},
				unix.SockFilter{Code: load, K: flags},
				unix.SockFilter{Code: set, K: 1 << 1, Jf: 1},
				unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EINVAL)},
				unix.SockFilter{Code: load, K: number})
		default:
			fail("no kernel without " + name + " can be played")
		}
	}
	loadFilter(append(filter, unix.SockFilter{Code: answer, K: unix.SECCOMP_RET_ALLOW}))
	become(words[1:])
}

// filtered runs a program under a filter of the kernel's own form, out of a file.
//
//	inside filtered FILE PROGRAM ARGUMENT…
func filtered(words []string) {
	data, err := os.ReadFile(words[0])
	if err != nil {
		fail(err.Error())
	}
	const size = int(unsafe.Sizeof(unix.SockFilter{}))
	filter := make([]unix.SockFilter, len(data)/size)
	for i := range filter {
		code := data[i*size:]
		filter[i] = unix.SockFilter{Code: binary.NativeEndian.Uint16(code), Jt: code[2], Jf: code[3], K: binary.NativeEndian.Uint32(code[4:])}
	}
	loadFilter(filter)
	become(words[1:])
}

// loadFilter loads a filter for this thread, which is the one that executes the program.
func loadFilter(filter []unix.SockFilter) {
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		fail("load the filter: " + errno.Error())
	}
}

// as runs a program as an ordinary user, without any right of root's.
//
//	inside as UID PROGRAM ARGUMENT…
func as(words []string) {
	id, err := strconv.Atoi(words[0])
	for _, step := range []func() error{
		func() error { return err },
		func() error { return unix.Setgroups(nil) },
		func() error { return unix.Setresgid(id, id, id) },
		func() error { return unix.Setresuid(id, id, id) },
	} {
		if err := step(); err != nil {
			fail("become user " + words[0] + ": " + err.Error())
		}
	}
	become(words[1:])
}

// nested runs a program as root of a user namespace of its own, in which the ids up to a size are
// what they are outside.
//
//	inside nested SIZE PROGRAM ARGUMENT…
func nested(words []string) {
	size, err := strconv.Atoi(words[0])
	if err != nil {
		fail(err.Error())
	}
	same := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: size}}
	cmd := exec.Command(words[1], words[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, UidMappings: same, GidMappings: same, GidMappingsEnableSetgroups: true}
	if err := cmd.Run(); err != nil {
		if ended, ok := errors.AsType[*exec.ExitError](err); ok {
			os.Exit(ended.ExitCode())
		}
		fail(err.Error())
	}
}

func become(words []string) {
	fail(words[0] + ": " + unix.Exec(words[0], words, os.Environ()).Error())
}

// covered runs a program in a mount namespace of its own, in which files of the host are covered by
// others.
//
//	inside covered FILE=BY,FILE=BY PROGRAM ARGUMENT…
func covered(words []string) {
	err := unix.Unshare(unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	}
	for _, pair := range strings.Split(words[0], ",") {
		file, by, _ := strings.Cut(pair, "=")
		if err == nil {
			err = unix.Mount(by, file, "", unix.MS_BIND, "")
		}
	}
	if err != nil {
		fail("cover " + words[0] + ": " + err.Error())
	}
	become(words[1:])
}
