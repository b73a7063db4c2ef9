package compile

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/caps"
	"golang.org/x/sys/unix"
)

// process gives the process what it is to be, as far as that can be done before
// the gate. What takes rights away comes after what needs them.
func (c *compiler) process(p *plan.Process) {
	c.scheduling(p)
	c.stdio()
	fd, hasDir := c.openWorkingDirectory(p)
	c.limits(p)
	if p.NoNewPrivileges {
		c.Because(p.At+"/noNewPrivileges", "set no_new_privs")
		c.Call(unix.SYS_PRCTL, program.Int(unix.PR_SET_NO_NEW_PRIVS), program.Int(1), program.Int(0), program.Int(0), program.Int(0))
	}
	c.user(p)
	if hasDir {
		c.enterWorkingDirectory(p, fd)
	}
	mask := uint32(0o022)
	if p.HasUmask {
		mask = p.Umask
	}
	c.Because(p.At+"/user/umask", "set the umask")
	c.Call(unix.SYS_UMASK, program.Imm(uint64(mask)))
}

// scheduling sets scheduler, I/O priority, affinity, NUMA policy and personality.
func (c *compiler) scheduling(p *plan.Process) {
	if s := p.Scheduler; s != nil && !(c.late && lateScheduler(p)) {
		c.Because(p.At+"/scheduler", "set the scheduler")
		// struct sched_attr (sched_setattr(2)): size and policy, flags, nice and
		// priority, runtime, deadline, period, clamps.
		attr := c.Words(program.Imm(56|uint64(s.Policy)<<32), program.Imm(s.Flags),
			program.Imm(uint64(uint32(s.Nice))|uint64(s.Priority)<<32),
			program.Imm(s.Runtime), program.Imm(s.Deadline), program.Imm(s.Period), program.Imm(s.Clamps))
		c.Call(unix.SYS_SCHED_SETATTR, program.Int(0), attr.Arg(), program.Int(0))
	}
	if p.IOPriority != nil {
		c.Because(p.At+"/ioPriority", "set the I/O priority")
		const whoProcess = 1
		c.Call(unix.SYS_IOPRIO_SET, program.Int(whoProcess), program.Int(0), program.Int(int64(*p.IOPriority)))
	}
	if len(p.Affinity) > 0 {
		c.Because(p.At+"/execCPUAffinity", "set the CPU affinity")
		c.Call(unix.SYS_SCHED_SETAFFINITY, program.Int(0), program.Int(int64(8*len(p.Affinity))), c.mask64(p.Affinity))
	}
	if m := p.MemoryPolicy; m != nil {
		c.Because("/linux/memoryPolicy", "set the memory policy")
		nodes, bits := program.Int(0), int64(0)
		if len(m.Nodes) > 0 {
			// The kernel takes one bit less than it is told (set_mempolicy(2), BUGS).
			nodes, bits = c.mask64(m.Nodes), int64(64*len(m.Nodes)+1)
		}
		c.Call(unix.SYS_SET_MEMPOLICY, program.Int(int64(m.Mode)), nodes, program.Int(bits))
	}
	if p.Personality != nil {
		c.Because("/linux/personality", "set the personality")
		c.Call(unix.SYS_PERSONALITY, program.Imm(*p.Personality))
	}
}

// ownScore sets the score for the out-of-memory killer, see Facts.OwnScore.
func (c *compiler) ownScore() {
	p := &c.p.Process
	if p.OOMScoreAdj == nil || !c.f.OwnScore {
		return
	}
	c.Because(p.At+"/oomScoreAdj", "set the score for the out-of-memory killer")
	fd := c.Cell()
	value := strconv.Itoa(*p.OOMScoreAdj)
	c.Call(unix.SYS_OPENAT, cwd, c.CString("/proc/self/oom_score_adj").Arg(), program.Int(unix.O_WRONLY|unix.O_CLOEXEC)).Into(fd)
	c.Call(unix.SYS_WRITE, fd.Value(), c.CString(value).Arg(), program.Int(int64(len(value))))
	c.close(fd)
}

// resetAffinity lets the process run on all CPUs of its cgroup. A daemon that is pinned
// would pin its containers otherwise: since Linux 6.2 a process keeps the mask it was
// given when it moves to another cpuset (sched_setaffinity(2), NOTES).
func (c *compiler) resetAffinity(p *plan.Process) {
	if p.KeepAffinity || len(p.Affinity) > 0 {
		return
	}
	c.Because(p.At, "run on all CPUs of the cgroup")
	done := c.NewLabel()
	all := bytes.Repeat([]byte{0xff}, mostCPUs/8)
	// A caller's filter or a deadline scheduler may refuse it: the affinity stays.
	c.Call(unix.SYS_SCHED_SETAFFINITY, program.Int(0), program.Int(int64(len(all))), c.Bytes(all).Arg()).ExpectAny(done)
	c.Place(done)
}

// mostCPUs is the most that any kernel is built for (CONFIG_NR_CPUS with MAXSMP). What
// a machine does not have is left out by the kernel.
const mostCPUs = 8192

func (c *compiler) mask64(mask []uint64) program.Arg {
	words := make([]program.Arg, len(mask))
	for i, w := range mask {
		words[i] = program.Imm(w)
	}
	return c.Words(words...).Arg()
}

// labels asks for the LSM labels of the next execve. They go through a private
// procfs: a write to /proc by path could end up in a file that the container
// put there (CVE-2019-16884). proc opens one.
func (c *compiler) labels(p *plan.Process, proc func(at string)) {
	if p.AppArmor != "" && p.AppArmor != "unconfined" {
		at := p.At + "/apparmorProfile"
		proc(at)
		c.Because(at, "ask for the AppArmor profile "+quote(p.AppArmor))
		fd := c.Cell()
		old, opened := c.NewLabel(), c.NewLabel()
		// attr/apparmor came with Linux 5.8; where several modules are stacked,
		// attr/exec may belong to another one.
		c.openAttr("attr/apparmor/exec", fd).Expect(old, unix.ENOENT)
		c.Place(opened)
		c.aside(old, opened, func() { c.openAttr("attr/exec", fd) })
		c.write(fd, "exec "+p.AppArmor)
		c.close(fd)
	}
	if p.SELinux != "" {
		at := p.At + "/selinuxLabel"
		proc(at)
		c.Because(at, "ask for the SELinux label "+quote(p.SELinux))
		c.writeAttr("attr/exec", p.SELinux)
	}
}

func (c *compiler) writeAttr(name, value string) {
	fd := c.Cell()
	c.openAttr(name, fd)
	c.write(fd, value)
	c.close(fd)
}

func (c *compiler) openAttr(name string, fd program.Cell) *program.Op {
	// thread-self and not self: an attribute is written for one task only.
	how := c.how(unix.O_WRONLY, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS|unix.RESOLVE_NO_XDEV)
	return c.openAt(c.proc.Value(), "thread-self/"+name, how).Into(fd)
}

// stdio gives the standard streams to the user where they belong to another, so
// that /dev/stdout can be opened again.
func (c *compiler) stdio() {
	for fd, chown := range c.f.ChownStdio {
		if chown {
			c.Because(c.p.Process.At+"/user", "give descriptor "+strconv.Itoa(fd)+" to the user")
			done := c.NewLabel()
			c.Call(unix.SYS_FCHOWN, program.Int(int64(fd)), program.Int(int64(c.p.Process.UID)), program.Int(-1)).
				Expect(done, unix.EPERM, unix.EINVAL, unix.EROFS)
			c.Place(done)
		}
	}
}

// openWorkingDirectory opens it inside the root while we may still pass through
// directories that the user may not. A descriptor obtained like this can't lie
// outside the container (CVE-2024-21626).
func (c *compiler) openWorkingDirectory(p *plan.Process) (program.Cell, bool) {
	if p.Cwd == "" || c.late && lateDirectory(p) {
		return program.Cell{}, false
	}
	c.Because(p.At+"/cwd", "change to "+p.Cwd)
	fd := c.Cell()
	if p.Cwd == "/" {
		c.Call(unix.SYS_CHDIR, c.CString("/").Arg())
		return fd, false
	}
	denied, done := c.NewLabel(), c.NewLabel()
	// Root may be the one who has no access, on NFS or in a user namespace: then
	// the user tries for himself later.
	c.find(p.Cwd, unix.O_PATH|unix.O_DIRECTORY, fd, denied, unix.EACCES)
	c.Call(unix.SYS_FCHDIR, fd.Value()).Expect(denied, unix.EACCES)
	c.Place(done)
	c.aside(denied, done, func() { c.Set(fd, program.Int(0)) })
	return fd, true
}

// enterWorkingDirectory tries once more as the user where root was refused.
func (c *compiler) enterWorkingDirectory(p *plan.Process, fd program.Cell) {
	c.Because(p.At+"/cwd", "change to "+p.Cwd)
	again, done := c.NewLabel(), c.NewLabel()
	// The cell still holds 0 where nothing was opened; branch on that.
	c.Call(program.Set, fd.Value()).ZeroFails().Expect(again, unix.EPIPE)
	c.close(fd)
	c.Place(done)
	c.aside(again, done, func() {
		c.need(p.Cwd, unix.O_PATH|unix.O_DIRECTORY, fd)
		c.Call(unix.SYS_FCHDIR, fd.Value())
		c.close(fd)
	})
}

// limits sets resource limits. Raising one takes CAP_SYS_RESOURCE of the host,
// which the runtime may have where the container has not.
func (c *compiler) limits(p *plan.Process) {
	c.restoreLimit()
	for i := range p.Rlimits {
		if !c.late || !slices.Contains(lateLimits(p), i) {
			c.limit(p, i)
		}
	}
}

func (c *compiler) limit(p *plan.Process, i int) {
	l := &p.Rlimits[i]
	c.Because(l.At, "set "+l.Name+" to "+limit(l.Soft)+" (hard "+limit(l.Hard)+")")
	refused, done := c.NewLabel(), c.NewLabel()
	value := c.Words(program.Imm(l.Soft), program.Imm(l.Hard))
	c.Call(unix.SYS_PRLIMIT64, program.Int(0), program.Int(int64(l.Resource)), value.Arg(), program.Int(0)).Expect(refused, unix.EPERM)
	c.Place(done)
	c.aside(refused, done, func() { c.askValue(program.AskLimits, uint64(i)) })
}

func limit(v uint64) string {
	if v == ^uint64(0) {
		return "unlimited"
	}
	return strconv.FormatUint(v, 10)
}

// user takes on the user, the groups and the capabilities.
func (c *compiler) user(p *plan.Process) {
	c.Because(p.At+"/capabilities/bounding", "drop capabilities from the bounding set")
	for n := 0; n <= c.f.LastCap; n++ {
		if p.Bounding&(1<<n) == 0 {
			c.Call(unix.SYS_PRCTL, program.Int(unix.PR_CAPBSET_DROP), program.Int(int64(n)), program.Int(0), program.Int(0), program.Int(0))
		}
	}
	c.groups(p)
	c.Because(p.At+"/user/gid", "set the group to "+strconv.FormatUint(uint64(p.GID), 10))
	gid := program.Int(int64(p.GID))
	c.Call(unix.SYS_SETRESGID, gid, gid, gid)
	c.Because(p.At+"/user/uid", "set the user to "+strconv.FormatUint(uint64(p.UID), 10))
	if p.UID != 0 {
		// Without it the capabilities would go with user 0 (capabilities(7)); what is
		// to be kept is said below.
		c.Call(unix.SYS_PRCTL, program.Int(unix.PR_SET_KEEPCAPS), program.Int(1), program.Int(0), program.Int(0), program.Int(0))
	}
	uid := program.Int(int64(p.UID))
	c.Call(unix.SYS_SETRESUID, uid, uid, uid)
	c.undumpable()
	c.capabilities(p)
}

func (c *compiler) groups(p *plan.Process) {
	if p.KeepGroups {
		return
	}
	c.Because(p.At+"/user/additionalGids", "set the additional groups")
	list := make([]byte, 0, 4*len(p.Groups))
	for _, g := range p.Groups {
		list = append(list, byte(g), byte(g>>8), byte(g>>16), byte(g>>24))
	}
	op := c.Call(unix.SYS_SETGROUPS, program.Int(int64(len(p.Groups))), c.Bytes(list).Arg())
	if (c.f.KeepGroups || c.f.DropGroups) && len(p.Groups) == 0 {
		// A user namespace without subordinate ids has setgroups denied
		// (user_namespaces(7)): the groups stay what they are, the user's own, or none.
		done := c.NewLabel()
		op.Expect(done, unix.EPERM)
		c.Place(done)
	}
}

// capabilities sets the sets of the thread. What the process ends up with, its
// execve works out from the inheritable, bounding and ambient sets, so the
// effective and permitted sets may hold CAP_SYS_ADMIN until then: loading a filter
// without no_new_privs needs it (seccomp(2)).
func (c *compiler) capabilities(p *plan.Process) {
	c.Because(p.At+"/capabilities", "set the capabilities")
	effective, permitted := p.Effective, p.Permitted
	if loadsAsAdmin(p) {
		effective |= 1 << caps.SysAdmin
		permitted |= 1 << caps.SysAdmin
	}
	c.capset(effective, permitted, p.Inheritable)
	c.Because(p.At+"/capabilities/ambient", "set the ambient capabilities")
	c.Call(unix.SYS_PRCTL, program.Int(unix.PR_CAP_AMBIENT), program.Int(unix.PR_CAP_AMBIENT_CLEAR_ALL), program.Int(0), program.Int(0), program.Int(0))
	for n := 0; n <= c.f.LastCap; n++ {
		if p.Ambient&(1<<n) != 0 {
			c.Call(unix.SYS_PRCTL, program.Int(unix.PR_CAP_AMBIENT), program.Int(unix.PR_CAP_AMBIENT_RAISE), program.Int(int64(n)), program.Int(0), program.Int(0))
		}
	}
}

func (c *compiler) capset(effective, permitted, inheritable caps.Set) {
	const version3 = 0x20080522 // capget(2)
	header := c.Words(program.Imm(version3))
	low, high := func(s caps.Set) uint64 { return uint64(s) & 0xffffffff }, func(s caps.Set) uint64 { return uint64(s) >> 32 }
	data := c.Words(
		program.Imm(low(effective)|low(permitted)<<32), program.Imm(low(inheritable)|high(effective)<<32),
		program.Imm(high(permitted)|high(inheritable)<<32))
	c.Call(unix.SYS_CAPSET, header.Arg(), data.Arg())
}

// lookUp finds the program to execute, at create, as the user and in the
// container's PATH (execvp(3)), and leaves its path in the returned cell.
func (c *compiler) lookUp(p *plan.Process) program.Cell {
	path := c.Cell()
	name, at := programOf(p)
	found := c.NewLabel()
	candidates := []string{name}
	if !strings.Contains(name, "/") {
		candidates = candidates[:0]
		for dir := range strings.SplitSeq(searchPath(p.Env), ":") {
			if dir == "" {
				dir = "."
			}
			candidates = append(candidates, dir+"/"+name)
		}
	}
	c.Because(at, "exec: "+quote(name))
	for i, candidate := range candidates {
		next := c.NewLabel()
		c.Set(path, c.CString(candidate).Arg())
		try := c.Call(unix.SYS_FACCESSAT2, cwd, path.Value(), program.Int(unix.X_OK), program.Int(unix.AT_EACCESS))
		if i < len(candidates)-1 {
			try.Expect(next, unix.ENOENT, unix.EACCES, unix.ENOTDIR, unix.ELOOP, unix.ENAMETOOLONG)
		}
		// A directory passes for executable; only the execve would tell, after create.
		c.Call(unix.SYS_OPENAT, cwd, path.Value(), program.Int(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)).ExpectAny(found)
		c.Place(next)
	}
	// Directories only. Opening one for writing fails with the right errno, and what
	// is looked for in PATH is not there.
	last := path.Value()
	if len(candidates) > 1 || candidates[0] != name {
		last = c.empty.Arg()
	}
	// Not even for an instant does it wait for what else has come there: a fifo, a file
	// that a process has a lease on (fcntl(2)).
	c.Call(unix.SYS_OPENAT, cwd, last, program.Int(unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC))
	c.Place(found)
	return path
}

// programOf is what is executed, and the entry that says so.
func programOf(p *plan.Process) (name, at string) {
	if p.Path != "" {
		return p.Path, p.PathAt
	}
	return p.Args[0], p.At + "/args/0"
}

// defaultPath is what a process without PATH is looked up in, as execvp(3) of
// glibc does it, with the directories that images really use.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func searchPath(env []string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], "PATH="); ok {
			return v
		}
	}
	return defaultPath
}
