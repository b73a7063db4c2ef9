package caps

// names is indexed by capability number. CAP_CHECKPOINT_RESTORE (40) came with
// Linux 5.9 and is the newest one.
var names = [...]string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID",
	"CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_LINUX_IMMUTABLE",
	"CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK",
	"CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE",
	"CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE",
	"CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE", "CAP_AUDIT_WRITE",
	"CAP_AUDIT_CONTROL", "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG",
	"CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF",
	"CAP_CHECKPOINT_RESTORE",
}

// SysAdmin is the number of CAP_SYS_ADMIN.
const SysAdmin = 21

// Last is the highest capability number that has a name here.
const Last = len(names) - 1

// Number returns the number of a capability by its full name, such as CAP_KILL.
func Number(name string) (int, bool) {
	for n, known := range names {
		if known == name {
			return n, true
		}
	}
	return 0, false
}

// Name returns the name of capability n, or "" for a number without one.
func Name(n int) string {
	if n < 0 || n >= len(names) {
		return ""
	}
	return names[n]
}

// A Set is a set of capabilities, bit n standing for capability n.
type Set uint64

// SetOf returns the set of the named capabilities, and the unknown names.
func SetOf(list []string) (set Set, unknown []string) {
	for _, name := range list {
		if n, ok := Number(name); ok {
			set |= 1 << n
		} else {
			unknown = append(unknown, name)
		}
	}
	return set, unknown
}

// Names lists the set in order of number.
func (s Set) Names() []string {
	var list []string
	for n := range names {
		if s&(1<<n) != 0 {
			list = append(list, names[n])
		}
	}
	return list
}
