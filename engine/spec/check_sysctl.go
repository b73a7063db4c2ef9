package spec

import (
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// sysctls lets only those kernel parameters pass that belong to a namespace of
// the container: any other one is the host's.
func (c *checker) sysctls(all place, linux *specs.Linux) {
	for _, name := range sortedKeys(linux.Sysctl) {
		p := all.at(name)
		path, ok := SysctlPath(name)
		if !ok {
			c.bad(p, "is not the name of a kernel parameter")
			continue
		}
		needs := SysctlNamespace(path)
		switch {
		case path == "kernel/hostname":
			c.hint(p, "contradicts the entry /hostname", "set /hostname instead")
		case needs == "":
			c.bad(p, "belongs to no namespace: it would change the host")
		case !has(linux, needs):
			c.hint(p, "needs a namespace of type "+string(needs)+": it would change the host",
				`add {"type": "`+string(needs)+`"} to /linux/namespaces`)
		}
		c.text(p, linux.Sysctl[name])
	}
}

// SysctlNamespace returns the type of namespace that a parameter belongs to,
// or "". The path is below /proc/sys.
func SysctlNamespace(path string) specs.LinuxNamespaceType {
	switch path {
	case "kernel/msgmax", "kernel/msgmnb", "kernel/msgmni", "kernel/msg_next_id", "kernel/auto_msgmni",
		"kernel/sem", "kernel/sem_next_id",
		"kernel/shmall", "kernel/shmmax", "kernel/shmmni", "kernel/shm_next_id", "kernel/shm_rmid_forced":
		return specs.IPCNamespace
	case "kernel/domainname": // Docker's --domainname comes so
		return specs.UTSNamespace
	}
	switch {
	case strings.HasPrefix(path, "fs/mqueue/"):
		return specs.IPCNamespace
	case strings.HasPrefix(path, "net/"):
		return specs.NetworkNamespace
	case strings.HasPrefix(path, "user/"): // the limits of user_namespaces(7) and the like, kept per user namespace
		return specs.UserNamespace
	}
	return ""
}

// SysctlPath turns a kernel parameter's name into its path below /proc/sys.
// As sysctl(8) has it, the first separator tells which form a name has: after a
// slash it is a path as it stands, after a dot it is one with slashes and dots
// exchanged, so that net.ipv4.conf.eth0/100.forwarding is the interface
// eth0.100.
func SysctlPath(name string) (path string, ok bool) {
	i := strings.IndexAny(name, "./")
	if i < 0 {
		return "", false
	}
	path = name
	if name[i] == '.' {
		path = strings.NewReplacer(".", "/", "/", ".").Replace(name)
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsAny(part, "\x00\n") {
			return "", false
		}
	}
	return path, true
}
