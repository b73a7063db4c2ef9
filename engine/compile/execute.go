package compile

import (
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// hooks lets the runtime run what is due before the root is pivoted.
func (c *compiler) hooks() {
	h := &c.p.Hooks
	//lint:ignore SA1019 deprecated is not gone: clients write prestart hooks, for nvidia most of all
	if len(h.Prestart)+len(h.CreateRuntime)+len(h.CreateContainer)+len(c.p.NetDevs) == 0 {
		return
	}
	c.Because("/hooks", "run the hooks of the creation")
	c.visibly(func() { c.ask(program.AskHooks) })
}

// visibly lets a runtime without the host's rights look into our namespaces for as long as it runs
// hooks in them, or puts on record which they are: the kernel shows those of a process that is not
// dumpable to none but root (ptrace(2)).
func (c *compiler) visibly(ask func()) {
	if !c.f.Visible {
		ask()
		return
	}
	c.Call(unix.SYS_PRCTL, program.Int(unix.PR_SET_DUMPABLE), program.Int(1))
	ask()
	c.undumpable()
}

// endBySignals lets a container that is created and not started be ended by what asks
// a process to end, as "kill" and an engine's stop do.
func (c *compiler) endBySignals() {
	if c.f.Gate < 0 {
		return // it is started at once
	}
	c.Because("", "let signals end the container before its start")
	for _, signal := range [...]unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM} {
		c.EndBySignal(signal)
	}
}

// gate is where a created container waits for its start. A process that connects to
// the gate and sends a byte starts it, and is told over the same connection if
// the rest fails; the connection closing by the execve says that it did not.
func (c *compiler) gate() {
	if !c.holdsNoMore() {
		c.waitAtGate()
	}
	if len(c.p.Hooks.StartContainer) > 0 {
		c.Because("/hooks/startContainer", "run the startContainer hooks")
		c.visibly(func() { c.ask(program.AskStartHooks) })
	}
}

func (c *compiler) waitAtGate() {
	if c.f.Gate < 0 {
		return
	}
	c.Because("", "wait for the start")
	conn := c.Cell()
	wait, lost := c.NewLabel(), c.NewLabel()
	c.ForgetDone() // it may wait for days
	c.Place(wait)
	c.Call(unix.SYS_ACCEPT4, program.Int(int64(c.f.Gate)), program.Int(0), program.Int(0), program.Int(unix.SOCK_CLOEXEC)).
		Into(conn).Expect(wait, unix.EINTR, unix.ECONNABORTED)
	// A starter that is gone before it has said anything did not start us.
	c.Call(unix.SYS_READ, conn.Value(), c.buf.Arg(), program.Int(1)).ZeroFails().Expect(lost, unix.EPIPE, unix.ECONNRESET)
	c.Call(unix.SYS_DUP3, conn.Value(), c.report, program.Int(unix.O_CLOEXEC))
	c.close(conn)
	c.aside(lost, wait, func() { c.close(conn) })
}

// execute loads the filter and becomes the user's program. Nothing may stand
// between the two: the filter binds us as well.
func (c *compiler) execute(p *plan.Process, path program.Cell) {
	argv, envp := c.strings(p.Args), c.strings(p.Env)
	if p.Seccomp != nil && !c.loaded {
		c.loadFilter(p)
	}
	c.sendListener(p)
	name, at := programOf(p)
	c.Because(at, "exec: "+quote(name))
	c.Call(unix.SYS_EXECVE, path.Value(), argv, envp)
}

func (c *compiler) strings(list []string) program.Arg {
	words := make([]program.Arg, 0, len(list)+1)
	for _, s := range list {
		words = append(words, c.CString(s).Arg())
	}
	return c.Words(append(words, program.Int(0))...).Arg()
}

// loadFilter loads the seccomp filter.
func (c *compiler) loadFilter(p *plan.Process) {
	c.Because("/linux/seccomp", "load the seccomp filter")
	code := c.Bytes(p.Seccomp.Filter.Bytes())
	// struct sock_fprog: length of 16 bits, padding, address.
	fprog := c.Words(program.Imm(uint64(len(p.Seccomp.Filter.Program))), code.Arg())
	load := c.Call(unix.SYS_SECCOMP, program.Int(unix.SECCOMP_SET_MODE_FILTER), program.Imm(uint64(p.Seccomp.Filter.Flags)), fprog.Arg())
	c.loaded = true
	if p.Seccomp.Filter.Notify {
		c.listener = c.Cell()
		load.Into(c.listener)
	}
}

// sendListener hands over the descriptor of a filter that notifies, once. What holds it can let any
// call through that the filter asks about, and so a process that others can see holds it no longer
// than it must.
func (c *compiler) sendListener(p *plan.Process) {
	if c.listener == (program.Cell{}) {
		return
	}
	// A cell into another: the message must have it where the kernel looks for it.
	c.Because("/linux/seccomp", "load the seccomp filter")
	c.pass = p.Seccomp.Pass
	c.askFD(program.AskListener, 0, func(into program.Addr) { c.Call(program.Set, c.listener.Value()).IntoAddr(into) })
	c.pass = 0
	if c.early {
		c.Call(unix.SYS_CLOSE, c.listener.Value())
	}
	c.listener = program.Cell{}
}
