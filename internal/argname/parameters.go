package argname

import "golang.org/x/sys/unix"

// A parameter is an argument of a call.
type parameter struct {
	call   string
	index  int
	kind   kind
	values []value
	// Where it depends on another argument: for ioctl(2) and the like.
	depends bool
	first   int
	on      uint64
	option  uint64 // the first argument, where that decides as well
}

// parameters are all that have names. Of those for one argument the first that applies counts.
var parameters = [...]parameter{
	{call: "accept4", index: 3, kind: flags, values: socketFlags},
	{call: "bpf", index: 0, kind: one, values: bpfCommands},
	{call: "clone", index: 0, kind: cloneFlags},
	{call: "close_range", index: 2, kind: flags, values: closeRange},
	{call: "dup3", index: 2, kind: flags, values: opens},
	{call: "faccessat", index: 2, kind: flags, values: access},
	{call: "faccessat2", index: 2, kind: flags, values: access},
	{call: "faccessat2", index: 3, kind: flags, values: accessAt},
	{call: "fchmod", index: 1, kind: mode},
	{call: "fchmodat", index: 2, kind: mode},
	{call: "fchownat", index: 4, kind: flags, values: at},
	{call: "fcntl", index: 1, kind: one, values: fcntls},
	{call: "fcntl", index: 2, kind: openFlags, depends: true, first: 1, on: unix.F_SETFL},
	{call: "fcntl", index: 2, kind: flags, values: descriptorFlags, depends: true, first: 1, on: unix.F_SETFD},
	{call: "fsconfig", index: 1, kind: one, values: fsconfigs},
	{call: "fsmount", index: 1, kind: flags, values: []value{{unix.FSMOUNT_CLOEXEC, "FSMOUNT_CLOEXEC"}}},
	{call: "fsmount", index: 2, kind: flags, values: mountAttributes},
	{call: "fsopen", index: 1, kind: flags, values: []value{{unix.FSOPEN_CLOEXEC, "FSOPEN_CLOEXEC"}}},
	{call: "fspick", index: 2, kind: flags, values: fspicks},
	{call: "ioctl", index: 1, kind: one, values: ioctls},
	{call: "ioctl", index: 2, kind: openFlags, depends: true, first: 1, on: unix.TIOCGPTPEER},
	{call: "keyctl", index: 0, kind: one, values: keyctls},
	{call: "kill", index: 1, kind: signal},
	{call: "linkat", index: 4, kind: flags, values: at},
	{call: "memfd_create", index: 1, kind: flags, values: memfds},
	{call: "mkdirat", index: 2, kind: mode},
	{call: "mknodat", index: 2, kind: nodeMode},
	{call: "mknodat", index: 3, kind: device},
	{call: "mount", index: 3, kind: flags, values: mounts},
	{call: "mount_setattr", index: 2, kind: flags, values: at},
	{call: "move_mount", index: 4, kind: flags, values: moves},
	{call: "open_tree", index: 2, kind: flags, values: trees},
	{call: "openat", index: 2, kind: openFlags},
	{call: "openat", index: 3, kind: mode},
	{call: "personality", index: 0, kind: one, values: personas},
	{call: "pidfd_send_signal", index: 1, kind: signal},
	{call: "pipe2", index: 1, kind: flags, values: opens},
	{call: "prctl", index: 0, kind: one, values: prctls},
	{call: "prctl", index: 1, kind: capability, depends: true, on: unix.PR_CAPBSET_DROP},
	{call: "prctl", index: 1, kind: one, values: ambients, depends: true, on: unix.PR_CAP_AMBIENT},
	{call: "prctl", index: 2, kind: capability, depends: true, first: 1, on: unix.PR_CAP_AMBIENT_RAISE, option: unix.PR_CAP_AMBIENT},
	{call: "prctl", index: 1, kind: signal, depends: true, on: unix.PR_SET_PDEATHSIG},
	{call: "prctl", index: 1, kind: flags, values: securebits, depends: true, on: unix.PR_SET_SECUREBITS},
	{call: "prlimit64", index: 1, kind: one, values: limits},
	{call: "ptrace", index: 0, kind: one, values: ptraces},
	{call: "recvfrom", index: 3, kind: flags, values: messages},
	{call: "recvmsg", index: 2, kind: flags, values: messages},
	{call: "rt_sigaction", index: 0, kind: signal},
	{call: "seccomp", index: 0, kind: one, values: seccomps},
	{call: "seccomp", index: 1, kind: flags, values: filters, depends: true, on: unix.SECCOMP_SET_MODE_FILTER},
	{call: "sendmsg", index: 2, kind: flags, values: messages},
	{call: "sendto", index: 3, kind: flags, values: messages},
	{call: "setns", index: 1, kind: flags, values: namespaces},
	{call: "socket", index: 0, kind: one, values: families},
	{call: "socket", index: 1, kind: flags, values: socketTypes},
	{call: "socketpair", index: 0, kind: one, values: families},
	{call: "socketpair", index: 1, kind: flags, values: socketTypes},
	{call: "statx", index: 2, kind: flags, values: at},
	{call: "statx", index: 3, kind: flags, values: statxs},
	{call: "umask", index: 0, kind: mode},
	{call: "umount2", index: 1, kind: flags, values: unmounts},
	{call: "unlinkat", index: 2, kind: flags, values: []value{{unix.AT_REMOVEDIR, "AT_REMOVEDIR"}}},
	{call: "unshare", index: 0, kind: flags, values: namespaces},
	{call: "wait4", index: 2, kind: flags, values: waits},
	{call: "waitid", index: 3, kind: flags, values: waits},
}

// A member is a word of the structure that an argument points to.
type member struct {
	call   string
	index  int
	word   int
	kind   kind
	values []value
}

var members = [...]member{
	{"mount_setattr", 3, 0, flags, mountAttributes},
	{"mount_setattr", 3, 1, flags, mountAttributes},
	{"mount_setattr", 3, 2, flags, mounts},
	{"openat2", 2, 0, openFlags, nil},
	{"openat2", 2, 1, mode, nil},
	{"openat2", 2, 2, flags, resolves},
}
