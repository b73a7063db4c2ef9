package compile

import (
	"errors"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/caps"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// A process of the container's pid namespace can be taken over by others there that
// have CAP_SYS_PTRACE, whatever it does against it, unless they are in a user
// namespace: what is not dumpable takes that capability in the user namespace where
// its program was executed, which for our init is the runtime's (mm->user_ns,
// __ptrace_may_access). So by the time that it is seen there it holds nothing that
// the process of the config will not have, and is under its filter where that lets
// through what is still to be done. What makes that hard is a filter without
// no_new_privs, which takes CAP_SYS_ADMIN to load.

// loadsAsAdmin reports whether the filter takes an effective CAP_SYS_ADMIN to load.
func loadsAsAdmin(p *plan.Process) bool {
	return p.Seccomp != nil && !p.NoNewPrivileges && p.Landlock == nil
}

// needsAdmin reports whether that is more than the process is to have. One that is
// permitted the capability can make it effective whenever it likes.
func needsAdmin(p *plan.Process) bool {
	return loadsAsAdmin(p) && p.Permitted&(1<<caps.SysAdmin) == 0
}

// reachable reports whether a process in the container's pid namespace may have what it
// takes to trace our init.
func reachable(container *plan.Plan) bool {
	const sysPtrace = 19
	pid := container.Namespace(specs.PIDNamespace)
	return pid != nil && pid.Path != "" ||
		container.Namespace(specs.UserNamespace) == nil && container.Process.Bounding&(1<<sysPtrace) != 0
}

// A sysCall is a call that is still to be made under the filter.
type sysCall struct {
	name string
	args []uint64
}

// lets reports whether the filter lets calls through.
func lets(p *plan.Process, calls []sysCall) bool {
	for _, c := range calls {
		action, _, ok := p.Seccomp.Filter.Decide(c.name, c.args...)
		if !ok || action != specs.ActAllow && action != specs.ActLog {
			return false
		}
	}
	return true
}

// callsOfAsks are those by which our init talks to the runtime and ends.
func (c *compiler) callsOfAsks(p *plan.Process) []sysCall {
	report := uint64(c.f.Report)
	calls := []sysCall{
		{"sendto", []uint64{report, 0, 16, unix.MSG_NOSIGNAL}}, {"read", []uint64{report, 0, 1}}, {"exit_group", nil},
	}
	if loadsAsAdmin(p) {
		calls = append(calls, sysCall{"capset", nil})
	}
	if p.Seccomp.Filter.Notify {
		calls = append(calls, sysCall{"sendmsg", []uint64{report, 0, unix.MSG_NOSIGNAL}}, sysCall{"close", nil})
	}
	return calls
}

// callsToAppear are those by which a process that is set up comes into the pid namespace.
func (c *compiler) callsToAppear(p *plan.Process) []sysCall {
	calls := append(c.callsOfAsks(p), sysCall{"clone", []uint64{forkFlags}}, sysCall{"setsid", nil})
	if p.Terminal {
		calls = append(calls, sysCall{"ioctl", []uint64{0, unix.TIOCSCTTY}})
	}
	if lateDirectory(p) {
		calls = append(calls, sysCall{"openat2", nil}, sysCall{"fchdir", nil})
	}
	if len(lateLimits(p)) > 0 {
		calls = append(calls, sysCall{"prlimit64", []uint64{0, unix.RLIMIT_NPROC}})
	}
	return calls
}

// appear has a process that is added come into the pid namespace, as what it will be.
func (c *compiler) appear(container *plan.Plan, p *plan.Process) error {
	if c.f.Fork && p.Seccomp != nil {
		if lets(p, c.callsToAppear(p)) {
			c.loadEarly(p)
		} else if needsAdmin(p) && reachable(container) {
			return errors.New("config.json: /linux/seccomp: a process with CAP_SYS_PTRACE could take over an added process, which needs CAP_SYS_ADMIN until the filter is loaded " +
				"(let the filter allow capset, clone, setsid, sendto, read, ioctl, prlimit64 and exit_group, or set process.noNewPrivileges, or take CAP_SYS_PTRACE from the container)")
		}
	}
	c.comeForth(p)
	return nil
}

// comeForth forks into the pid namespace, where the container sees the child. What only a
// child can do follows.
func (c *compiler) comeForth(p *plan.Process) {
	if c.f.Fork {
		c.fork()
		for _, i := range lateLimits(p) {
			c.limit(p, i)
		}
		if lateDirectory(p) {
			c.Because(p.At+"/cwd", "change to "+p.Cwd)
			fd := c.Cell()
			c.need(p.Cwd, unix.O_PATH|unix.O_DIRECTORY, fd)
			c.Call(unix.SYS_FCHDIR, fd.Value())
			c.Call(unix.SYS_CLOSE, fd.Value())
		}
		if lateScheduler(p) {
			c.Because(p.At+"/scheduler", "set the scheduler")
			c.ask(program.AskScheduling)
		}
	}
	if p.Terminal && c.late {
		c.Because(p.At+"/terminal", "make it the controlling terminal")
		c.controlTerminal()
	}
}

// atRest comes before a created container waits for its start. Meanwhile exec may add
// processes to it, and startContainer hooks of the image run in it.
func (c *compiler) atRest() error {
	p := &c.p.Process
	if p.Seccomp == nil {
		return nil
	}
	if c.loaded || lets(p, c.callsAtRest(p)) {
		if !c.loaded {
			c.loadEarly(p)
		}
		return nil
	}
	if needsAdmin(p) && len(c.p.Hooks.StartContainer) > 0 && reachable(c.p) {
		return errors.New("config.json: /hooks/startContainer: a hook with CAP_SYS_PTRACE could take over the container's first process, which needs CAP_SYS_ADMIN until the filter is loaded " +
			"(let linux.seccomp allow capset, accept4, dup3, madvise, prctl, close, sendto, read and exit_group, or set process.noNewPrivileges, or take CAP_SYS_PTRACE from the container)")
	}
	return nil
}

// holdsNoMore reports whether the first process is no more at its gate than its program
// will be, so that it may be looked at there. An ordinary user's exec has to, to find
// its namespaces.
func (c *compiler) holdsNoMore() bool { return c.loaded || !needsAdmin(&c.p.Process) }

func (c *compiler) callsAtRest(p *plan.Process) []sysCall {
	calls := append(c.callsOfAsks(p), sysCall{"accept4", []uint64{uint64(c.f.Gate), 0, 0, unix.SOCK_CLOEXEC}},
		sysCall{"dup3", nil}, sysCall{"madvise", nil}, sysCall{"close", nil})
	if c.f.Visible {
		calls = append(calls, sysCall{"prctl", []uint64{unix.PR_SET_DUMPABLE}})
	}
	return calls
}

// WaitsWithMore reports whether the first process of a container, until its start,
// holds what it will not have, where a process that is added could reach for it.
func WaitsWithMore(p *plan.Plan) bool {
	c := &compiler{p: p, f: &Facts{}}
	return needsAdmin(&p.Process) && !lets(&p.Process, c.callsAtRest(&p.Process)) && reachable(p)
}

// loadEarly loads the filter, and lets go of what that took and gave: with the listener, a process
// that takes us over could let through what the filter asks about.
func (c *compiler) loadEarly(p *plan.Process) {
	c.loadFilter(p)
	c.early = true
	c.sendListener(p)
	if !loadsAsAdmin(p) {
		return
	}
	c.Because(p.At+"/capabilities", "let go of what loading the seccomp filter took")
	c.capset(p.Effective, p.Permitted, p.Inheritable)
}

// lateLimits are the limits, by index, that would count the process which sets up the
// one that they are for.
func lateLimits(p *plan.Process) (list []int) {
	for i := range p.Rlimits {
		if p.Rlimits[i].Resource == unix.RLIMIT_NPROC {
			list = append(list, i)
		}
	}
	return list
}

// lateScheduler reports whether a fork would undo the setting of the scheduler, or be
// refused after it (sched(7)). The child may not set it: the runtime does.
func lateScheduler(p *plan.Process) bool {
	return p.Scheduler != nil && (p.Scheduler.Flags&unix.SCHED_FLAG_RESET_ON_FORK != 0 || p.Scheduler.Policy == unix.SCHED_DEADLINE)
}

// lateDirectory reports whether the working directory is one of the process itself, which
// a procfs has only from when the process is in its pid namespace.
func lateDirectory(p *plan.Process) bool {
	for _, own := range [...]string{"/proc/self", "/proc/thread-self"} {
		if _, ok := below(own, p.Cwd); ok {
			return true
		}
	}
	return false
}

// controlTerminal makes the standard input's terminal the one of our session.
func (c *compiler) controlTerminal() {
	c.Call(unix.SYS_IOCTL, program.Int(0), program.Imm(unix.TIOCSCTTY), program.Int(0))
}
