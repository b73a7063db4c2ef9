package compile

import (
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Exec compiles a process that is added to a running container. p describes the
// container; its Process is replaced by the given one.
//
// The container sees the process from its fork into the pid namespace on, and one
// with CAP_SYS_PTRACE can take it over at that very instant (ptrace(2)). So what does
// the setting up stays outside of that namespace, and its child is no more than the
// process will be: the fork is the last but one thing that is done.
func Exec(p *plan.Plan, process *plan.Process, f *Facts) (*program.Program, error) {
	container := *p
	container.Process = *process
	container.TimeOffsets = ""
	container.Namespaces = nil // all of them are joined, none is made
	c := newCompiler(&container, f)
	c.late = f.Fork
	c.begin(process.PreserveFDs)
	c.joinCgroups()
	c.resetAffinity(process)
	c.dropGroups()
	c.labels(process, c.procBeforePivot) // by the caller's procfs, as one of the container's pid namespace is not ours to make
	c.keyringLabel(c.procBeforePivot)
	c.join()
	if process.OOMScoreAdj != nil && !f.OwnScore {
		c.Because(process.At+"/oomScoreAdj", "set the score for the out-of-memory killer")
		c.ask(program.AskOOMScore)
	}
	if p.Namespace(specs.UserNamespace) != nil {
		container.Namespaces = []plan.Namespace{{Type: specs.UserNamespace}}
		c.becomeRoot()
	}
	if f.RootFD > 0 {
		c.enterRoot()
	}
	c.sessionKeyring()
	if process.Terminal {
		c.root = c.Cell()
		c.Because(process.At+"/terminal", "open the container's root")
		c.Call(unix.SYS_OPENAT, cwd, c.CString("/").Arg(), program.Int(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)).Into(c.root)
		c.terminal()
	}
	rules := c.landlockRules(process)
	c.process(process)
	path := c.lookUp(process)
	c.landlockEnforce(process, rules)
	c.closeOwn()
	c.sendStamps()
	if err := c.appear(p, process); err != nil {
		return nil, err
	}
	c.execute(process, path)
	return c.finish()
}

// A HookRun is a hook that runs in the container's namespaces, and otherwise with the
// rights of the runtime: a createContainer hook.
type HookRun struct {
	Path      string
	Dir       string // where it begins
	Args, Env []string
	At        string
	// UserNS is set where the hook enters a user namespace: it is root there.
	UserNS bool
}

// Hook compiles a hook. Its standard input holds the container's state.
func Hook(h *HookRun, f *Facts) (*program.Program, error) {
	p := &plan.Plan{}
	if h.UserNS {
		p.Namespaces = []plan.Namespace{{Type: specs.UserNamespace}}
	}
	c := newCompiler(p, f)
	c.begin(0)
	c.joinCgroups()
	c.dropGroups()
	c.join()
	c.Because("/root/path", "change to "+quote(h.Dir))
	c.Call(unix.SYS_CHDIR, c.CString(h.Dir).Arg())
	c.Call(unix.SYS_UMASK, program.Imm(0o022))
	c.becomeRoot()
	c.closeOwn()
	c.restoreLimit()
	c.Because(h.At, "enter the container's namespaces")
	if f.Fork {
		c.fork()
	}
	c.Because(h.At+"/path", "exec: "+quote(h.Path))
	argv, envp := c.strings(h.Args), c.strings(h.Env)
	c.Call(unix.SYS_EXECVE, c.CString(h.Path).Arg(), argv, envp)
	return c.finish()
}

// enterRoot changes into a root directory that is not the root of its mount
// namespace: that of a container made without pivot_root.
func (c *compiler) enterRoot() {
	c.Because("/root/path", "enter the root file system")
	c.Call(unix.SYS_FCHDIR, program.Int(int64(c.f.RootFD)))
	c.Call(unix.SYS_CHROOT, c.CString(".").Arg())
	c.Call(unix.SYS_CHDIR, c.CString("/").Arg())
}
