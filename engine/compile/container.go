package compile

import (
	"strconv"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// compiler is one Program in the making.
type compiler struct {
	*program.Builder
	p *plan.Plan
	f *Facts

	report    program.Arg
	buf       program.Addr // a scratch byte that answers are read into
	empty     program.Addr // ""
	root      program.Cell // the container's root
	later     []func()     // code for what seldom happens, placed after the end
	openFiles program.Addr // the limit of open files as it was
	tidy      bool         // descriptors are closed one by one, as they would become many

	binds    []program.Cell // sources opened early, by mount
	cgroups  []program.Cell // directories of cgroups opened early, in the order of their use
	hostNull program.Cell   // the host's null device, opened early
	places   []place        // what has been mounted, in that order
	mounting int            // the number of the mount that is being made, or -1
	// lastUse says until when places are held: see release.
	lastUse []int
	sealed  []sealing    // what is to become read-only in the end
	stat    program.Addr // a struct statx
	reasons program.Addr // what the kernel says of what it refuses
	dir     string       // the directory that dirFD is
	dirFD   program.Cell
	proc    program.Cell // a procfs of the container's pid namespace
	hasPid  bool         // proc is valid
	dark    program.Cell // an empty read-only directory, once a mask has needed one
	null    program.Cell // a read-only mount of the null device, likewise

	// For makeLinked: what one step says.
	kind              program.Cell
	linkName, linkDir program.Addr

	late     bool // it is a child that goes on, from appear on
	loaded   bool // the seccomp filter is
	listener program.Cell
	pass     uint64 // see plan.Seccomp, while the listener is handed over
	early    bool   // the filter is loaded before others see us

	// For remountEach: the path of the spare descriptor, and what one step says.
	spare program.Addr
	flags program.Cell
	below program.Addr
}

func newCompiler(p *plan.Plan, f *Facts) *compiler {
	c := &compiler{Builder: program.NewBuilder(), p: p, f: f, report: program.Int(int64(f.Report)), mounting: -1}
	c.tidy = tidyFor(p, f)
	c.buf = c.Zeroed(8)
	c.empty = c.CString("")
	return c
}

// Container compiles the first process of a container.
func Container(p *plan.Plan, f *Facts) (*program.Program, error) {
	c := newCompiler(p, f)
	c.late = f.Outside
	c.begin(p.Process.PreserveFDs)
	c.joinCgroups()
	c.resetAffinity(&p.Process)
	if c.late {
		// In a procfs of the container's we have no directory, being outside.
		c.labels(&p.Process, c.procBeforePivot)
		c.keyringLabel(c.procBeforePivot)
		c.hasPid = false
	}
	c.namespaces()
	if p.Namespace(specs.MountNamespace) != nil {
		if p.Root.Discard {
			c.openSources()
			c.becomeRoot() // what the overlays are made with is to be the container's
			c.layers()
		} else if f.OwnTree {
			c.ownTree()
		} else {
			c.openRoot()
			c.openSources()
			c.becomeRoot()
		}
		c.mounts()
		c.devices()
		c.links()
		c.workingDirectory()
	} else {
		c.openPlainRoot()
		c.becomeRoot()
		c.devices()
		c.links()
		c.workingDirectory()
	}
	if !c.late {
		c.keyringLabel(c.procBeforePivot)
	}
	c.sessionKeyring()
	c.network()
	c.names()
	if p.Process.Terminal {
		c.terminal()
	}
	c.hooks()
	c.seal()
	c.sysctls()
	c.maskPaths()
	c.readonlyPaths()
	c.pivot()
	rules := c.landlockRules(&p.Process)
	if !c.late {
		c.labels(&p.Process, c.privateProc)
	}
	c.process(&p.Process)
	var path program.Cell
	if len(p.Process.Args) > 0 {
		path = c.lookUp(&p.Process)
	}
	c.landlockEnforce(&p.Process, rules)
	c.endBySignals()
	c.closeOwn()
	c.sendStamps()
	if c.late {
		if p := &p.Process; p.Seccomp != nil && lets(p, append(c.callsToAppear(p), c.callsAtRest(p)...)) {
			c.loadEarly(p)
		}
		places, root := c.places, c.root
		c.places, c.root = nil, program.Cell{} // they are closed, and / is the container's
		c.comeForth(&p.Process)
		c.places, c.root = places, root // what was put aside before needs them
	}
	if err := c.atRest(); err != nil {
		return nil, err
	}
	c.visibly(func() {
		c.ask(program.AskReady)
		if c.holdsNoMore() {
			c.waitAtGate()
		}
	})
	c.gate()
	if len(p.Process.Args) > 0 {
		c.execute(&p.Process, path)
	} else { // never reached: start refuses
		c.Call(unix.SYS_EXIT_GROUP, program.Int(0))
	}
	return c.finish()
}

func (c *compiler) finish() (*program.Program, error) {
	for len(c.later) > 0 {
		blocks := c.later
		c.later = nil
		for _, block := range blocks {
			block()
		}
	}
	return c.Build(c.f.Report)
}

// begin takes from the new process what it does not need.
func (c *compiler) begin(preserve int) {
	c.ownScore()
	c.Because("", "set up the process")
	// A process that can see the container's pid namespace must not attach to us
	// while we still hold the runtime's descriptors (CVE-2016-9962).
	// The ids of a user namespace can only be mapped before, as the files for it
	// belong to root in a process like that.
	if !c.f.MapIDs {
		c.undumpable()
	}
	// All descriptors that the process is not meant to have end at its execve,
	// those that leaked from the runtime's caller too (CVE-2024-21626).
	// CLOSE_RANGE_CLOEXEC came with Linux 5.11. Before that our callers see to what
	// leaked into them, and what we were given ourselves is known.
	old, on := c.NewLabel(), c.NewLabel()
	c.Call(unix.SYS_CLOSE_RANGE, program.Int(int64(3+preserve)), program.Imm(^uint64(0)>>32), program.Int(unix.CLOSE_RANGE_CLOEXEC)).
		Expect(old, unix.EINVAL, unix.ENOSYS)
	c.Place(on)
	c.aside(old, on, func() {
		for _, fd := range c.f.inherited() {
			c.Call(unix.SYS_FCNTL, program.Int(int64(fd)), program.Int(unix.F_SETFD), program.Int(unix.FD_CLOEXEC))
		}
	})
	if c.f.OpenFiles != 0 {
		// The limit of open files is for the program, not for the setup.
		limit := c.Words(program.Imm(c.f.OpenFiles), program.Imm(c.f.OpenFiles))
		c.openFiles = c.Zeroed(16)
		c.Call(unix.SYS_PRLIMIT64, program.Int(0), program.Int(unix.RLIMIT_NOFILE), limit.Arg(), c.openFiles.Arg())
	}
	// Go keeps to what its caller ignores of these; C libraries leave their internal
	// ones ignored in what they start. The program begins with none ignored.
	untouched := c.Zeroed(32) // a struct sigaction of SIG_DFL
	for _, signal := range [...]unix.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGPIPE, 32, 33} {
		c.Call(unix.SYS_RT_SIGACTION, program.Int(int64(signal)), untouched.Arg(), program.Int(0), program.Int(8))
	}
	if c.f.TimerSlack != 0 {
		c.Call(unix.SYS_PRCTL, program.Int(unix.PR_SET_TIMERSLACK), program.Imm(c.f.TimerSlack))
	}
	// A session of its own: no terminal of the caller, no process group to share.
	// The leader of one already is told EPERM.
	own := c.NewLabel()
	c.Call(unix.SYS_SETSID).Expect(own, unix.EPERM)
	c.Place(own)
	c.Call(unix.SYS_UMASK, program.Int(0))
}

func (c *compiler) undumpable() {
	c.Call(unix.SYS_PRCTL, program.Int(unix.PR_SET_DUMPABLE), program.Int(0))
}

// aside defers a block to the end of the Program: from enters it, back is where
// it goes on. It is about the same thing as what leads to it, so it has its note.
func (c *compiler) aside(from, back program.Label, block func()) {
	note, beside := c.Note(), c.Beside()
	c.later = append(c.later, func() {
		c.Place(from)
		c.Because(note.Pointer, note.Text)
		beside(block)
		c.Jump(back)
	})
}

// sendStamps tells when the calls so far were made, where that is wanted. It is
// before the seccomp filter, which may not let us ask for the time.
func (c *compiler) sendStamps() {
	if c.f.Stamps {
		c.Because("", "tell when each call was made")
		c.SendStamps(c.report)
	}
}

// ask sends an Ask without a descriptor and waits for the answer.
func (c *compiler) ask(kind program.Ask) { c.askValue(kind, 0) }

func (c *compiler) askValue(kind program.Ask, value uint64) {
	c.tell(c.request(program.Request{Kind: kind, Value: value}, false))
	c.answer()
}

// request is the record of one that is made here.
func (c *compiler) request(r program.Request, fd bool) program.Addr {
	c.May(program.Expectation{Request: r, FD: fd})
	return c.Record(r)
}

// tell sends a record and goes on.
func (c *compiler) tell(record program.Addr) { c.tellAll(record, 16) }

func (c *compiler) tellAll(record program.Addr, size int) {
	c.Call(unix.SYS_SENDTO, c.report, record.Arg(), program.Int(int64(size)), program.Int(unix.MSG_NOSIGNAL), program.Int(0), program.Int(0))
}

// askFD hands the runtime a descriptor with the Ask. The call that produced the
// descriptor has stored it where the returned place says.
func (c *compiler) askFD(kind program.Ask, value uint64, fd func(into program.Addr)) {
	c.send(kind, value, fd)
	c.answer()
}

// send is askFD without the answer.
func (c *compiler) send(kind program.Ask, value uint64, fd func(into program.Addr)) {
	record := c.request(program.Request{Kind: kind, Value: value}, true)
	iov := c.Words(record.Arg(), program.Int(16))
	// A control message (cmsg(3)): length of header and data, SOL_SOCKET (1) and
	// SCM_RIGHTS (1), then the descriptor.
	control := c.Words(program.Int(20), program.Imm(1|1<<32), program.Int(0))
	message := c.Words(program.Int(0), program.Int(0), iov.Arg(), program.Int(1), control.Arg(), program.Int(24), program.Int(0))
	fd(control.Plus(16))
	c.Call(unix.SYS_SENDMSG, c.passing(c.report, message.Arg(), program.Int(unix.MSG_NOSIGNAL))...)
}

// answer waits for the runtime. The end of the file means that the runtime is
// gone or does not want to go on.
func (c *compiler) answer() {
	c.Call(unix.SYS_READ, c.passing(c.report, c.buf.Arg(), program.Int(1))...).ZeroFails()
}

// passing has a call of three arguments let through by a filter that knows the pass.
func (c *compiler) passing(args ...program.Arg) []program.Arg {
	if c.pass == 0 {
		return args
	}
	return append(args, program.Int(0), program.Int(0), program.Imm(c.pass))
}

// how is an open_how structure for openat2(2).
func (c *compiler) how(flags uint64, mode uint64, resolve uint64) program.Addr {
	return c.Words(program.Imm(flags|unix.O_CLOEXEC), program.Imm(mode), program.Imm(resolve))
}

// openAt makes one openat2 call. A rename or mount elsewhere on the machine
// while ".." is resolved makes it answer EAGAIN, which is to be tried again.
func (c *compiler) openAt(dir program.Arg, path string, how program.Addr) *program.Op {
	return c.openNamed(dir, c.CString(path), how)
}

func (c *compiler) openNamed(dir program.Arg, path, how program.Addr) *program.Op {
	return c.Call(unix.SYS_OPENAT2, dir, path.Arg(), how.Arg(), program.Int(24)).Retry()
}

// relative makes a container path relative, as openat2 resolves it from the root.
func relative(path string) string {
	for len(path) > 0 && path[0] == '/' {
		path = path[1:]
	}
	if path == "" {
		return "."
	}
	return path
}

// close closes a descriptor that is not needed any more. Most containers have
// so few that it is cheaper to close all at once, by closeOwn.
func (c *compiler) close(fd program.Cell) {
	if c.tidy {
		c.Call(unix.SYS_CLOSE, fd.Value())
	}
}

// tidyFor reports whether the setup would open many descriptors, or more than it may,
// unless it closes each: a mount takes up to four.
func tidyFor(p *plan.Plan, f *Facts) bool {
	const others, many = 64, 1024
	return uint64(4*(len(f.Layers)+len(p.Mounts))+3*(len(p.Masked)+len(p.Readonly)+len(p.Sysctls))+2*len(p.Devices)+others) > min(f.OpenFiles, many)
}

// closeOwn closes all descriptors but those that the process is given and those
// that still connect it to the runtime.
func (c *compiler) closeOwn() {
	c.Because("", "close the setup's descriptors")
	own := max(c.f.Report, c.f.Gate, c.f.Life) + 1
	c.Call(unix.SYS_CLOSE_RANGE, program.Int(int64(own)), program.Imm(^uint64(0)>>32), program.Int(0))
}

// restoreLimit puts the limit of open files back to what the runtime's caller
// has it at.
func (c *compiler) restoreLimit() {
	if c.f.OpenFiles != 0 {
		c.Because("", "restore the limit of open files")
		c.Call(unix.SYS_PRLIMIT64, program.Int(0), program.Int(unix.RLIMIT_NOFILE), c.openFiles.Arg(), program.Int(0))
	}
}

var cwd = program.Int(unix.AT_FDCWD)

func quote(s string) string { return strconv.Quote(s) }
