package compile

import (
	"strconv"

	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// setAttributes changes attributes of a mount that we hold. The call that does it is
// nil where there is none, or several.
func (c *compiler) setAttributes(tree program.Cell, set, clear, flags uint64) *program.Op {
	if (set|clear)&unix.MOUNT_ATTR__ATIME != 0 {
		clear |= unix.MOUNT_ATTR__ATIME // a field, not a flag: it is set as a whole or refused
	}
	if set|clear == 0 {
		return nil
	}
	return c.changeAttributes(tree, MountChange{Set: set, Clear: clear, Recursive: flags&unix.AT_RECURSIVE != 0})
}

// whileDetached and onceAttached place what changes the attributes of a new mount.
// It is best done before any process can see the mount; without mount_setattr the
// kernel changes attached mounts only.
func (c *compiler) whileDetached(change func()) {
	if !c.f.NoMountSetattr {
		change()
	}
}

func (c *compiler) onceAttached(change func()) {
	if c.f.NoMountSetattr {
		change()
	}
}

func (c *compiler) changeAttributes(tree program.Cell, m MountChange) *program.Op {
	if c.f.NoMountSetattr {
		if m.Propagation != 0 && m.Set|m.Clear != 0 { // which mount(2) takes in two calls
			c.remountEach(tree, MountChange{Propagation: m.Propagation, Recursive: m.Recursive})
			m.Propagation = 0
		}
		c.remountEach(tree, m)
		return nil
	}
	flags := uint64(unix.AT_EMPTY_PATH)
	if m.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	attr := c.Words(program.Imm(m.Set), program.Imm(m.Clear), program.Imm(m.Propagation), program.Int(0))
	return c.Call(unix.SYS_MOUNT_SETATTR, tree.Value(), c.empty.Arg(), program.Imm(flags), attr.Arg(), program.Int(32))
}

// remountEach changes attributes by mount(2), for kernels before 5.12. That takes
// all the flags that a mount is to have, which only the runtime can work out, and
// one call for each mount of a tree. So the runtime is handed the tree, and answers
// with a list of RemountStep; the Program makes the calls.
//
// mount(2) takes a path. The one there is for a file that is held open has the
// number of the descriptor in it, so the file gets the number that is set aside.
func (c *compiler) remountEach(tree program.Cell, m MountChange) {
	if c.spare == (program.Addr{}) {
		c.spare = c.CString("/proc/self/fd/" + strconv.Itoa(c.f.Spare))
		c.flags, c.below = c.Cell(), c.Zeroed(remountPath)
	}
	step := c.Words(c.flags.Addr().Arg(), program.Int(8), c.below.Arg(), program.Int(remountPath))
	spare := program.Int(int64(c.f.Spare))
	next := func(end program.Label) {
		c.Call(unix.SYS_READV, c.report, step.Arg(), program.Int(2)).ZeroFails()
		c.Call(program.Set, c.flags.Value()).ZeroFails().Expect(end, unix.EPIPE)
	}
	change := func() {
		c.Call(unix.SYS_MOUNT, program.Int(0), c.spare.Arg(), program.Int(0), c.flags.Value(), program.Int(0))
	}
	more, end := c.NewLabel(), c.NewLabel()
	c.send(program.AskMountFlags, m.pack(), func(into program.Addr) { c.Call(program.Set, tree.Value()).IntoAddr(into) })
	next(end) // the mount itself
	c.Call(unix.SYS_DUP3, tree.Value(), spare, program.Int(unix.O_CLOEXEC))
	change()
	c.Place(more) // those below it
	next(end)
	inner := c.Cell()
	c.Call(unix.SYS_OPENAT2, tree.Value(), c.below.Arg(), c.how(unix.O_PATH, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS).Arg(), program.Int(24)).
		Into(inner).Retry()
	c.Call(unix.SYS_DUP3, inner.Value(), spare, program.Int(unix.O_CLOEXEC))
	c.Call(unix.SYS_CLOSE, inner.Value())
	change()
	c.Jump(more)
	c.Place(end)
	c.answer()
}

// remountPath is the room for the path of a mount below another.
const remountPath = 4096

// A RemountStep is one mount to change: the flags for mount(2), and its path below
// the mount that the runtime was asked about, "" for that itself.
type RemountStep struct {
	Flags uint64
	Path  string
}

// Message is the step as the Program reads it. The one without flags ends the list.
func (s RemountStep) Message() ([]byte, bool) {
	if len(s.Path) >= remountPath {
		return nil, false
	}
	b := make([]byte, 8, 8+len(s.Path)+1)
	for i := range 8 {
		b[i] = byte(s.Flags >> (8 * i))
	}
	return append(append(b, s.Path...), 0), true
}

// MountChange is a change of a mount's attributes.
type MountChange struct {
	// Set and Clear are attributes (MOUNT_ATTR_*), Propagation is one of MS_SHARED
	// and its like, or 0.
	Set, Clear, Propagation uint64
	// Recursive is set for a change of all mounts of a tree.
	Recursive bool
}

// pack puts a change into the value of an Ask: the attributes in 22 bits each, then
// what there is of propagation (MS_UNBINDABLE to MS_SHARED, bits 17 to 20), and
// whether it is for the whole tree.
func (m MountChange) pack() uint64 {
	v := m.Set | m.Clear<<22 | m.Propagation>>17<<44
	if m.Recursive {
		v |= 1 << 63
	}
	return v
}

// ParseMountChange reads the value of a MountFlags Ask.
func ParseMountChange(v uint64) MountChange {
	const attributes = 1<<22 - 1
	return MountChange{Set: v & attributes, Clear: v >> 22 & attributes, Propagation: v >> 44 & 15 << 17, Recursive: v>>63 != 0}
}
