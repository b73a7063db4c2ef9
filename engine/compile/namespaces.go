package compile

import (
	"github.com/berth-runtime/berth/engine/program"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// joinCgroups waits for the cgroup that another process creates, and brings the process
// into those that the runtime's clone has not. It comes before any namespace: afterwards the paths
// mean something else and the rights are gone.
func (c *compiler) joinCgroups() {
	if c.f.AwaitCgroup {
		c.Because(c.p.Cgroup.At, "wait for systemd to start the unit")
		c.ask(program.AskCgroup)
	}
	if c.f.Group > 0 {
		c.forkInto()
	}
	if len(c.f.Tasks) == 0 {
		return
	}
	self := c.CString("0")
	fd := c.Cell()
	for _, file := range c.f.Tasks {
		c.Because(c.p.Cgroup.At, "join the cgroup by "+file)
		c.Call(unix.SYS_OPENAT, cwd, c.CString(file).Arg(), program.Int(unix.O_WRONLY|unix.O_CLOEXEC)).Into(fd)
		c.Call(unix.SYS_WRITE, fd.Value(), self.Arg(), program.Int(1))
		c.close(fd)
	}
}

// dropGroups lets go of the caller's supplementary groups before anything is entered
// whose owner may have forbidden that (user_namespaces(7), /proc/PID/setgroups).
func (c *compiler) dropGroups() {
	if c.f.DropGroups && !c.p.Process.KeepGroups {
		c.Because("", "let go of the caller's groups")
		c.Call(unix.SYS_SETGROUPS, program.Int(0), program.Int(0))
	}
}

// join enters the namespaces that are there. A pid namespace takes hold of children
// only: who has joined one is not seen in it.
func (c *compiler) join() {
	for _, j := range c.f.Joins {
		c.Because(j.At, j.Text)
		c.Call(unix.SYS_SETNS, program.Int(int64(j.FD)), program.Imm(uint64(j.Flag)))
	}
}

// namespaces enters and makes those that the runtime's clone has not made.
func (c *compiler) namespaces() {
	c.join()
	made := c.f.NewNamespaces
	if c.f.MapIDs {
		c.Because("/linux/uidMappings", "make the user namespace")
		c.Call(unix.SYS_UNSHARE, program.Imm(unix.CLONE_NEWUSER))
		c.Because("/linux/uidMappings", "map the ids of the user namespace")
		c.ask(program.AskMapIDs)
		made &^= unix.CLONE_NEWUSER
	}
	if c.p.Makes(specs.CgroupNamespace) {
		// Made here and not by clone, which would root it at the runtime's cgroup.
		made |= unix.CLONE_NEWCGROUP
	}
	made &^= c.ownIPC()
	if made != 0 {
		c.Because("/linux/namespaces", "make the namespaces")
		c.Call(unix.SYS_UNSHARE, program.Imm(uint64(made)))
	}
	if c.p.TimeOffsets != "" {
		c.Because("/linux/timeOffsets", "set the clocks of the time namespace")
		fd := c.Cell()
		c.Call(unix.SYS_OPENAT, cwd, c.CString("/proc/self/timens_offsets").Arg(), program.Int(unix.O_WRONLY|unix.O_CLOEXEC)).Into(fd)
		c.write(fd, c.p.TimeOffsets)
		c.close(fd)
	}
	if c.f.MapIDs {
		c.Because("/linux/namespaces", "make the namespaces")
		c.undumpable() // now that the files of /proc/self are not needed any more
	}
	if c.p.Init {
		c.minder()
	}
	if c.f.Fork && !c.late {
		c.fork()
	}
}

const forkFlags = unix.CLONE_PARENT | uint64(unix.SIGCHLD)

// fork goes on in a child, which is in the namespaces that take hold of children only.
func (c *compiler) fork() {
	c.Because("/linux/namespaces", "fork into the new pid or time namespace")
	c.goOnIn(c.Call(unix.SYS_CLONE, program.Imm(forkFlags), program.Int(0), program.Int(0), program.Int(0), program.Int(0)))
}

// forkInto goes on in a child that is in a group of version 2 from its beginning.
func (c *compiler) forkInto() {
	c.Because(c.p.Cgroup.At, "clone into the cgroup")
	zero := program.Int(0)
	// struct clone_args (clone(2)): the signal has to be 0 with CLONE_PARENT, and is the
	// one that we have.
	args := c.Words(program.Imm(unix.CLONE_PARENT|unix.CLONE_INTO_CGROUP),
		zero, zero, zero, zero, zero, zero, zero, zero, zero, program.Int(int64(c.f.Group)))
	c.goOnIn(c.Call(unix.SYS_CLONE3, args.Arg(), program.Int(cloneArgsSize)))
}

const cloneArgsSize = 88 // CLONE_ARGS_SIZE_VER2 of linux/sched.h

// goOnIn goes on in the child of a clone, which is the runtime's too (CLONE_PARENT), so
// that a caller that waits for the container waits for the right process.
func (c *compiler) goOnIn(clone *program.Op) {
	child := c.NewLabel()
	record := c.request(program.Request{Kind: program.AskForked}, false)
	clone.ZeroFails().Expect(child, unix.EPIPE).IntoAddr(record.Plus(program.AskValueAt))
	c.tell(record)
	c.Call(unix.SYS_EXIT_GROUP, program.Int(0))
	c.Place(child)
	// What the child reports must not overtake the news of it: the runtime would
	// take it for the process that is about to end.
	c.answer()
	own := c.NewLabel()
	c.Call(unix.SYS_SETSID).Expect(own, unix.EPERM)
	c.Place(own)
}

// becomeRoot takes the ids that files are made with. Before it, we are still
// the runtime's user to the host's file systems, and can open what only that
// user may; after it, what we make belongs to the container.
func (c *compiler) becomeRoot() {
	if c.p.Namespace(specs.UserNamespace) == nil {
		return
	}
	c.Because("/linux/uidMappings", "become the root of the user namespace")
	gid, uid := program.Int(int64(c.f.RootGID)), program.Int(int64(c.f.RootUID))
	c.Call(unix.SYS_SETRESGID, gid, gid, gid)
	c.Call(unix.SYS_SETRESUID, uid, uid, uid)
	// setresuid has made us as dumpable as fs.suid_dumpable says (proc(5)).
	c.undumpable()
	if flag := c.ownIPC(); flag != 0 {
		c.Because("/linux/namespaces", "make the IPC namespace")
		c.Call(unix.SYS_UNSHARE, program.Imm(uint64(flag)))
	}
}

// ownIPC is the flag of an IPC namespace that is made only when we are the root of the
// user namespace: its message queues come into being with it, and their root directory
// is owned by its creator (mqueue_get_inode in ipc/mqueue.c).
func (c *compiler) ownIPC() uintptr {
	if c.p.Namespace(specs.UserNamespace) == nil {
		return 0
	}
	return c.f.NewNamespaces & unix.CLONE_NEWIPC
}

// names sets host and domain name.
func (c *compiler) names() {
	if n := c.p.Hostname; n != "" {
		c.Because("/hostname", "set the host name to "+quote(n))
		c.Call(unix.SYS_SETHOSTNAME, c.CString(n).Arg(), program.Int(int64(len(n))))
	}
	if n := c.p.Domainname; n != "" {
		c.Because("/domainname", "set the domain name to "+quote(n))
		c.Call(unix.SYS_SETDOMAINNAME, c.CString(n).Arg(), program.Int(int64(len(n))))
	}
}

// network brings the loopback device of a new network namespace up, as a
// container without any other network still talks to itself.
func (c *compiler) network() {
	if !c.p.NetUp {
		return
	}
	c.Because("", "bring up the loopback device")
	// struct ifreq (netdevice(7)): name of 16 bytes, flags of 16 bits.
	request := make([]byte, 40)
	copy(request, "lo")
	request[16] = unix.IFF_UP
	fd := c.Cell()
	c.Call(unix.SYS_SOCKET, program.Int(unix.AF_INET), program.Int(unix.SOCK_DGRAM|unix.SOCK_CLOEXEC), program.Int(0)).Into(fd)
	c.Call(unix.SYS_IOCTL, fd.Value(), program.Imm(unix.SIOCSIFFLAGS), c.Bytes(request).Arg())
	c.close(fd)
}

// keyringLabel asks for the label of the process for the keyrings that are made from
// here on: others may not use its keys. execve takes the wish back
// (selinux_bprm_creds_for_exec). proc opens the procfs by which it is asked for.
func (c *compiler) keyringLabel(proc func(at string)) {
	if p := &c.p.Process; p.SELinux != "" && c.p.Keyring != "" {
		at := p.At + "/selinuxLabel"
		proc(at)
		c.Because(at, "ask for the SELinux label "+quote(p.SELinux)+" of the session keyring")
		c.writeAttr("attr/keycreate", p.SELinux)
	}
}

// sessionKeyring gives the container a keyring of its own.
func (c *compiler) sessionKeyring() {
	if c.p.Keyring == "" {
		return
	}
	c.Because("", "join a new session keyring")
	none := c.NewLabel()
	ring := c.Cell()
	// ENOSYS without CONFIG_KEYS, EPERM under a seccomp filter of an outer
	// container, EDQUOT where the user has too many: then there is no keyring to
	// leak either.
	c.Call(unix.SYS_KEYCTL, program.Int(unix.KEYCTL_JOIN_SESSION_KEYRING), c.CString(c.p.Keyring).Arg()).
		Expect(none, unix.ENOSYS, unix.EPERM, unix.EDQUOT).Into(ring)
	// Processes of the same user may search it, as they may in a login session.
	const possessorAll, userViewReadSearchLink = 0x3f000000, 0x001b0000
	c.Call(unix.SYS_KEYCTL, program.Int(unix.KEYCTL_SETPERM), ring.Value(), program.Imm(possessorAll|userViewReadSearchLink))
	c.Place(none)
}

func (c *compiler) write(fd program.Cell, text string) {
	c.Call(unix.SYS_WRITE, fd.Value(), c.CString(text).Arg(), program.Int(int64(len(text))))
}
