package compile

import (
	"github.com/berth-runtime/berth/plan"
	"github.com/berth-runtime/berth/program"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Exec compiles a process that is added to a running container. p describes the
// container; its Process is replaced by the given one.
func Exec(p *plan.Plan, process *plan.Process, f *Facts) (*program.Program, error) {
	container := *p
	container.Process = *process
	container.TimeOffsets = ""
	container.Namespaces = nil // all of them are joined, none is made
	c := newCompiler(&container, f)
	c.begin(process.PreserveFDs)
	c.joinCgroups()
	c.namespaces()
	if process.OOMScoreAdj != nil {
		c.Because(process.At+"/oomScoreAdj", "set the score for the out-of-memory killer")
		c.ask(OOMScore)
	}
	if p.Namespace(specs.UserNamespace) != nil {
		container.Namespaces = []plan.Namespace{{Type: specs.UserNamespace}}
		c.becomeRoot()
	}
	if f.RootFD > 0 {
		c.enterRoot()
	}
	c.sessionKeyring(c.privateProc)
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
	c.sendStamps()
	c.execute(process, path)
	return c.finish()
}

// A HookRun is a hook that runs in the container's namespaces.
type HookRun struct {
	Path      string
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
	c.Because(h.At, "enter the container's namespaces")
	c.namespaces()
	c.becomeRoot()
	if f.RootFD > 0 {
		c.enterRoot()
	}
	c.restoreLimit()
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
