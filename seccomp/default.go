package seccomp

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Default is a profile for ordinary programs in a container: it lets through what they need, by
// name, and answers the rest with EPERM, or with ENOSYS where a call is newer than the list. It has
// rules for all architectures that machines of the native one can run. With each capability that
// the container keeps, as "CAP_SYS_ADMIN", the calls that it is for are let through as well; the
// kernel checks the capability itself then.
//
// What is left out is what has no use in a container and a record of holes in the kernel (io_uring,
// userfaultfd, bpf, the kernel's keys, AF_ALG and AF_VSOCK sockets), what acts on the whole machine
// (modules, kexec, swap, the clock), and what makes namespaces. It is much like the profiles of
// Docker and Podman.
func Default(capabilities ...string) *specs.LinuxSeccomp {
	p := &specs.LinuxSeccomp{DefaultAction: specs.ActErrno, Architectures: kin(NativeArch())}
	allow := func(names []string, args ...specs.LinuxSeccompArg) {
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: names, Action: specs.ActAllow, Args: args})
	}
	for _, names := range [...][]string{defaultFiles[:], defaultMemory[:], defaultProcesses[:], defaultTime[:], defaultNetwork[:], defaultMachine[:]} {
		allow(names)
	}

	// Every family but AF_ALG (38) and AF_VSOCK (40). AF_VSOCK leads out of the network namespace,
	// to the hypervisor. A rule for each range: conditions on one argument in one rule would be
	// alternatives, see Compile.
	socket := []string{"socket"}
	allow(socket, specs.LinuxSeccompArg{Index: 0, Value: 38, Op: specs.OpLessThan})
	allow(socket, specs.LinuxSeccompArg{Index: 0, Value: 39, Op: specs.OpEqualTo})
	allow(socket, specs.LinuxSeccompArg{Index: 0, Value: 40, Op: specs.OpGreaterThan})

	// PER_LINUX, PER_LINUX32 (0x8), both with UNAME26 (0x20000), and the question what it is. The
	// other ones switch protections off.
	for _, persona := range [...]uint64{0x0, 0x8, 0x20000, 0x20008, 0xffffffff} {
		allow([]string{"personality"}, specs.LinuxSeccompArg{Index: 0, Value: persona, Op: specs.OpEqualTo})
	}

	if slices.Contains(capabilities, "CAP_SYS_ADMIN") {
		allow([]string{"clone", "clone3", "unshare"})
	} else {
		// Threads and processes, no namespaces. s390 has the flags in the second argument.
		flags := specs.LinuxSeccompArg{Value: cloneNewAll, Op: specs.OpMaskedEqual}
		if a := NativeArch(); a == specs.ArchS390X {
			flags.Index = 1
		}
		allow([]string{"clone"}, flags)
		// clone3 has its flags in memory, where a filter can't see them. C libraries take ENOSYS
		// for the sign to use clone.
		enosys := uint(38)
		switch NativeArch() {
		case specs.ArchMIPS, specs.ArchMIPS64, specs.ArchMIPSEL, specs.ArchMIPSEL64:
			enosys = 89
		}
		p.Syscalls = append(p.Syscalls, specs.LinuxSyscall{Names: []string{"clone3"}, Action: specs.ActErrno, ErrnoRet: &enosys})
	}
	for _, c := range capabilities {
		if names := defaultFor(c); names != nil {
			allow(names)
		}
	}
	return p
}

// DefaultCapabilities are those that make a difference to [Default].
func DefaultCapabilities() []string { return slices.Clone(defaultCapabilities[:]) }

var defaultCapabilities = [...]string{
	"CAP_SYS_CHROOT", "CAP_DAC_READ_SEARCH", "CAP_BPF", "CAP_PERFMON", "CAP_SYSLOG", "CAP_SYS_BOOT", "CAP_SYS_MODULE",
	"CAP_SYS_NICE", "CAP_SYS_PACCT", "CAP_SYS_PTRACE", "CAP_SYS_RAWIO", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG",
	"CAP_SYS_ADMIN", // last, as it is the widest and allows much of the others
}

// cloneNewAll is CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. CLONE_NEWTIME
// is no flag of clone(2).
const cloneNewAll = 0x7e020000

// kin is the architectures that a machine of the native one runs too.
func kin(native specs.Arch) []specs.Arch {
	switch native {
	case specs.ArchX86_64:
		return []specs.Arch{specs.ArchX86_64, specs.ArchX86, specs.ArchX32}
	case specs.ArchAARCH64:
		return []specs.Arch{specs.ArchAARCH64, specs.ArchARM}
	case specs.ArchMIPS64:
		return []specs.Arch{specs.ArchMIPS64, specs.ArchMIPS, specs.ArchMIPS64N32}
	case specs.ArchMIPSEL64:
		return []specs.Arch{specs.ArchMIPSEL64, specs.ArchMIPSEL, specs.ArchMIPSEL64N32}
	case specs.ArchS390X:
		return []specs.Arch{specs.ArchS390X, specs.ArchS390}
	}
	return []specs.Arch{native}
}

var defaultFiles = [...]string{
	"_llseek", "access", "cachestat", "chdir", "chmod", "chown", "chown32", "close", "close_range", "copy_file_range", "creat",
	"dup", "dup2", "dup3", "faccessat", "faccessat2", "fadvise64", "fadvise64_64", "arm_fadvise64_64", "fallocate",
	"fanotify_mark", "fchdir", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchown32", "fchownat", "fcntl", "fcntl64",
	"fdatasync", "fgetxattr", "file_getattr", "flistxattr", "flock", "fremovexattr", "fsetxattr", "fstat", "fstat64",
	"fstatat64", "fstatfs", "fstatfs64", "fsync", "ftruncate", "ftruncate64", "futimesat", "getcwd", "getdents", "getdents64",
	"getxattr", "getxattrat", "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch", "ioctl", "lchown",
	"lchown32", "lgetxattr", "link", "linkat", "listmount", "listxattr", "listxattrat", "llistxattr", "lremovexattr", "lseek",
	"lsetxattr", "lstat", "lstat64", "mkdir", "mkdirat", "mknod", "mknodat", "name_to_handle_at", "newfstatat", "open",
	"openat", "openat2", "pipe", "pipe2", "pread64", "preadv", "preadv2", "pwrite64", "pwritev", "pwritev2", "read",
	"readahead", "readdir", "readlink", "readlinkat", "readv", "removexattr", "removexattrat", "rename", "renameat",
	"renameat2", "rmdir", "sendfile", "sendfile64", "setxattr", "setxattrat", "splice", "stat", "stat64", "statfs",
	"statfs64", "statmount", "statx", "symlink", "symlinkat", "sync", "sync_file_range", "sync_file_range2",
	"arm_sync_file_range", "syncfs", "tee", "truncate", "truncate64", "umask", "unlink", "unlinkat", "utime", "utimensat",
	"utimensat_time64", "utimes", "vmsplice", "write", "writev",
	// waiting for them, and asynchronous I/O of the old kind
	"_newselect", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait", "epoll_pwait2", "epoll_wait",
	"epoll_wait_old", "eventfd", "eventfd2", "io_cancel", "io_destroy", "io_getevents", "io_pgetevents",
	"io_pgetevents_time64", "io_setup", "io_submit", "poll", "ppoll", "ppoll_time64", "pselect6", "pselect6_time64", "select",
}

var defaultMemory = [...]string{
	"brk", "madvise", "map_shadow_stack", "membarrier", "memfd_create", "memfd_secret", "mincore", "mlock", "mlock2",
	"mlockall", "mmap", "mmap2", "mprotect", "mremap", "mseal", "msync", "munlock", "munlockall", "munmap", "pkey_alloc",
	"pkey_free", "pkey_mprotect", "remap_file_pages",
}

var defaultProcesses = [...]string{
	"capget", "capset", "execve", "execveat", "exit", "exit_group", "fork", "get_robust_list", "get_thread_area", "getcpu",
	"getegid", "getegid32", "geteuid", "geteuid32", "getgid", "getgid32", "getgroups", "getgroups32", "getpgid", "getpgrp",
	"getpid", "getppid", "getpriority", "getresgid", "getresgid32", "getresuid", "getresuid32", "getrlimit", "getrusage",
	"getsid", "gettid", "getuid", "getuid32", "ioprio_get", "ioprio_set", "kill", "landlock_add_rule",
	"landlock_create_ruleset", "landlock_restrict_self", "pause", "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64",
	"process_mrelease", "process_vm_readv", "process_vm_writev", "ptrace", "restart_syscall", "rseq", "rseq_slice_yield",
	"rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait",
	"rt_sigtimedwait_time64", "rt_tgsigqueueinfo", "sched_get_priority_max", "sched_get_priority_min", "sched_getaffinity",
	"sched_getattr", "sched_getparam", "sched_getscheduler", "sched_rr_get_interval", "sched_rr_get_interval_time64",
	"sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield", "seccomp", "set_robust_list",
	"set_thread_area", "set_tid_address", "setfsgid", "setfsgid32", "setfsuid", "setfsuid32", "setgid", "setgid32",
	"setgroups", "setgroups32", "setpgid", "setpriority", "setregid", "setregid32", "setresgid", "setresgid32", "setresuid",
	"setresuid32", "setreuid", "setreuid32", "setrlimit", "setsid", "setuid", "setuid32", "sigaction", "sigaltstack",
	"signal", "signalfd", "signalfd4", "sigpending", "sigprocmask", "sigreturn", "sigsuspend", "tgkill", "tkill",
	"ugetrlimit", "vfork", "wait4", "waitid", "waitpid",
	// locks and queues between them
	"futex", "futex_requeue", "futex_time64", "futex_wait", "futex_waitv", "futex_wake", "ipc", "mq_getsetattr", "mq_notify",
	"mq_open", "mq_timedreceive", "mq_timedreceive_time64", "mq_timedsend", "mq_timedsend_time64", "mq_unlink", "msgctl",
	"msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop", "semtimedop_time64", "shmat", "shmctl", "shmdt",
	"shmget",
}

// What sets the clock is decided by CAP_SYS_TIME in the kernel for these; they read it too.
var defaultTime = [...]string{
	"adjtimex", "alarm", "clock_adjtime", "clock_adjtime64", "clock_getres", "clock_getres_time64", "clock_gettime",
	"clock_gettime64", "clock_nanosleep", "clock_nanosleep_time64", "getitimer", "gettimeofday", "nanosleep", "setitimer",
	"time", "timer_create", "timer_delete", "timer_getoverrun", "timer_gettime", "timer_gettime64", "timer_settime",
	"timer_settime64", "timerfd", "timerfd_create", "timerfd_gettime", "timerfd_gettime64", "timerfd_settime",
	"timerfd_settime64", "times",
}

// socketcall is not here: it would be a way around the rules for socket.
var defaultNetwork = [...]string{
	"accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen", "recv", "recvfrom", "recvmmsg",
	"recvmmsg_time64", "recvmsg", "send", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown", "socketpair",
}

var defaultMachine = [...]string{
	"getrandom", "sysinfo", "uname",
	// of one architecture or two
	"arch_prctl", "breakpoint", "cacheflush", "get_tls", "modify_ldt", "riscv_flush_icache", "riscv_hwprobe",
	"s390_pci_mmio_read", "s390_pci_mmio_write", "s390_runtime_instr", "set_tls", "swapcontext", "uprobe", "uretprobe",
}

// defaultFor is the calls that a capability is for.
func defaultFor(capability string) []string {
	switch capability {
	case "CAP_DAC_READ_SEARCH":
		return []string{"open_by_handle_at"}
	case "CAP_SYS_ADMIN":
		return []string{"bpf", "fanotify_init", "file_setattr", "fsconfig", "fsmount", "fsopen", "fspick", "listns",
			"lookup_dcookie", "lsm_get_self_attr", "lsm_list_modules", "lsm_set_self_attr", "mount", "mount_setattr",
			"move_mount", "open_tree", "open_tree_attr", "perf_event_open", "pivot_root", "quotactl", "quotactl_fd",
			"setdomainname", "sethostname", "setns", "syslog", "umount", "umount2"}
	case "CAP_BPF":
		return []string{"bpf"}
	case "CAP_PERFMON":
		return []string{"perf_event_open"}
	case "CAP_SYSLOG":
		return []string{"syslog"}
	case "CAP_SYS_BOOT":
		return []string{"reboot"}
	case "CAP_SYS_CHROOT":
		return []string{"chroot"}
	case "CAP_SYS_MODULE":
		return []string{"delete_module", "finit_module", "init_module"}
	case "CAP_SYS_NICE":
		return []string{"get_mempolicy", "mbind", "set_mempolicy", "set_mempolicy_home_node"}
	case "CAP_SYS_PACCT":
		return []string{"acct"}
	case "CAP_SYS_PTRACE":
		return []string{"kcmp", "pidfd_getfd", "process_madvise"}
	case "CAP_SYS_RAWIO":
		return []string{"ioperm", "iopl"}
	case "CAP_SYS_TIME":
		return []string{"clock_settime", "clock_settime64", "settimeofday", "stime"}
	case "CAP_SYS_TTY_CONFIG":
		return []string{"vhangup"}
	}
	return nil
}
