package compile

import (
	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// minder makes the first process of the new pid namespace, which only minds the
// others; the Program goes on in the second. The first one is spared by signals
// that it does not handle, by its own abort(3) too, and has to wait for all
// orphans (pid_namespaces(7)): a program that was not written for that part
// misbehaves in it. The minder lets the kernel reap the orphans, and ends with the
// runtime, and everything in the namespace with it.
//
// It is made from outside, as the first process of a namespace may not make a
// child of its parent (clone(2), CLONE_PARENT).
func (c *compiler) minder() {
	c.Because("", "make the process that minds the others")
	minds, next := c.NewLabel(), c.NewLabel()
	record := c.request(program.Request{Kind: program.AskMinder}, false)
	c.Call(unix.SYS_CLONE, program.Imm(forkFlags), program.Int(0), program.Int(0), program.Int(0), program.Int(0)).
		ZeroFails().Expect(minds, unix.EPIPE).IntoAddr(record.Plus(program.AskValueAt))
	c.tell(record)
	c.Place(next)
	c.aside(minds, next, func() {
		// From the old root it is taken along by pivot_root(2); anywhere else it would
		// keep the host's files at hand.
		c.Call(unix.SYS_CHDIR, c.CString("/").Arg())
		// Ignored, children are reaped without being waited for (wait(2), NOTES).
		ignore := c.Words(program.Int(1), program.Int(0), program.Int(0), program.Int(0))
		c.Call(unix.SYS_RT_SIGACTION, program.Int(int64(unix.SIGCHLD)), ignore.Arg(), program.Int(0), program.Int(8))
		// The reader of the program's output waits for its end.
		c.Call(unix.SYS_DUP3, program.Int(int64(c.f.Life)), program.Int(0), program.Int(0))
		c.Call(unix.SYS_CLOSE_RANGE, program.Int(1), program.Imm(^uint64(0)>>32), program.Int(0))
		const version3 = 0x20080522 // capget(2)
		none := c.Words(program.Int(0), program.Int(0), program.Int(0))
		c.Call(unix.SYS_CAPSET, c.Words(program.Imm(version3)).Arg(), none.Arg())
		wait := c.NewLabel()
		c.Place(wait)
		c.Call(unix.SYS_READ, program.Int(0), c.buf.Arg(), program.Int(1)).Expect(wait, unix.EINTR)
		c.Call(unix.SYS_EXIT_GROUP, program.Int(0))
	})
}
