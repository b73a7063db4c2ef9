package compile

import (
	"path"
	"strings"

	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// target opens the place where something is to be mounted, and makes it where
// it is missing. The making stands after the end of the Program, as most images
// have what is needed.
func (c *compiler) target(name string, dir bool) program.Cell {
	return c.targetBy(name, dir, 0, nil)
}

// targetBy is target that resolves more strictly, and runs found where the place was
// there before.
func (c *compiler) targetBy(name string, dir bool, resolve uint64, found func(target program.Cell)) program.Cell {
	flags := uint64(unix.O_PATH)
	if dir {
		flags |= unix.O_DIRECTORY
	}
	t := target{name: name, dir: dir, flags: flags, resolve: resolve, found: found, fd: c.Cell(), mount: c.mounting}
	done := c.NewLabel()
	c.reach(&t, c.spot(name), done)
	c.Place(done)
	return t.fd
}

type target struct {
	name           string
	dir            bool // what it is made as
	flags, resolve uint64
	found          func(target program.Cell)
	fd             program.Cell
	mount          int // the number of the mount that it is for, or -1
}

// reach opens or makes a target from a spot, and goes on after it. A path that leads
// out of the mount that the spot is in is resolved by its names.
func (c *compiler) reach(t *target, s spot, done program.Label) {
	missing := c.NewLabel()
	op := c.openSpot(s, t.flags, t.resolve, t.fd).Expect(missing, unix.ENOENT)
	if s.open {
		op.Expect(missing, unix.EXDEV)
	}
	if t.found != nil {
		t.found(t.fd)
	}
	c.aside(missing, done, func() {
		out := c.NewLabel()
		follow := t.mount >= 0 && t.resolve&unix.RESOLVE_NO_SYMLINKS == 0
		stray := func(op *program.Op) {
			switch {
			case s.open:
				op.Expect(out, unix.EXDEV, unix.ENOENT)
			case follow:
				op.Expect(out, unix.ENOENT)
			}
		}
		c.makePath(s, t.dir, stray)
		stray(c.openSpot(s, t.flags, t.resolve, t.fd))
		switch {
		case s.open:
			c.aside(out, done, func() {
				named := c.NewLabel()
				c.reach(t, c.named(t.name), named)
				c.Place(named)
			})
		case follow:
			c.aside(out, done, func() { c.makeLinked(t) })
		}
	})
}

// makeLinked makes a target that a dangling link leads to, such as /etc/resolv.conf of
// many images. To take a link apart is not for a list of calls: the runtime reads it,
// and answers with what is missing (LinkStep), which is made here, in the root.
func (c *compiler) makeLinked(t *target) {
	if c.kind == (program.Cell{}) {
		c.kind, c.linkName, c.linkDir = c.Cell(), c.Zeroed(linkName), c.Zeroed(linkDir)
	}
	step := c.Words(c.kind.Addr().Arg(), program.Int(8), c.linkName.Arg(), program.Int(linkName), c.linkDir.Arg(), program.Int(linkDir))
	parent := c.Cell()
	next := func() {
		c.Call(unix.SYS_READV, c.report, step.Arg(), program.Int(3)).ZeroFails()
	}
	enter := func() {
		c.Call(unix.SYS_OPENAT2, c.root.Value(), c.linkDir.Arg(), c.how(unix.O_PATH|unix.O_DIRECTORY, 0, inRoot).Arg(), program.Int(24)).Into(parent).Retry()
	}
	more, last, there, made := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.send(program.AskLinkTarget, uint64(t.mount), func(into program.Addr) { c.Call(program.Set, c.root.Value()).IntoAddr(into) })
	c.Place(more)
	next()
	c.Call(program.Set, c.kind.Value()).ZeroFails().Expect(last, unix.EPIPE)
	enter()
	c.Call(unix.SYS_MKDIRAT, parent.Value(), c.linkName.Arg(), program.Imm(0o755)).Expect(there, unix.EEXIST)
	c.Place(there)
	c.Call(unix.SYS_CLOSE, parent.Value())
	c.Jump(more)
	c.Place(last)
	enter()
	if t.dir {
		c.Call(unix.SYS_MKDIRAT, parent.Value(), c.linkName.Arg(), program.Imm(0o755)).Expect(made, unix.EEXIST)
	} else {
		c.Call(unix.SYS_MKNODAT, parent.Value(), c.linkName.Arg(), program.Imm(unix.S_IFREG|0o644), program.Int(0)).Expect(made, unix.EEXIST)
	}
	c.Place(made)
	c.Call(unix.SYS_CLOSE, parent.Value())
	c.answer()
	c.openSpot(c.named(t.name), t.flags, t.resolve, t.fd)
}

// The room for a LinkStep's strings, with a NUL behind each.
const (
	linkName = unix.NAME_MAX + 1
	linkDir  = unix.PathMax
)

// A LinkStep is one directory to make, or the target itself, which is the last.
type LinkStep struct {
	Path string // absolute in the container's root
	Last bool
}

// Message is the step as the Program reads it: a number that is 0 for the last one, the
// name, and the directory.
func (s LinkStep) Message() ([]byte, bool) {
	dir, name := path.Split(s.Path)
	dir = relative(path.Clean(dir))
	if len(name) >= linkName || len(dir) >= linkDir || name == "" {
		return nil, false
	}
	b := make([]byte, 8+linkName+len(dir)+1)
	if !s.Last {
		b[0] = 1
	}
	copy(b[8:], name)
	copy(b[8+linkName:], dir)
	return b, true
}

// makePath makes a directory, or an empty file, and all directories above it.
// Each step opens the one before inside the root, so a link on the way is
// followed as the container would follow it. stray is given what a link can lead astray.
func (c *compiler) makePath(s spot, dir bool, stray func(*program.Op)) {
	parts := strings.Split(s.rest, "/")
	above := "."
	parent := c.Cell()
	for i, part := range parts {
		there := c.NewLabel()
		stray(c.openAt(s.dir, above, c.how(unix.O_PATH|unix.O_DIRECTORY, 0, s.resolve)).Into(parent))
		if i < len(parts)-1 || dir {
			c.Call(unix.SYS_MKDIRAT, parent.Value(), c.CString(part).Arg(), program.Imm(0o755)).Expect(there, unix.EEXIST)
		} else {
			c.Call(unix.SYS_MKNODAT, parent.Value(), c.CString(part).Arg(), program.Imm(unix.S_IFREG|0o644), program.Int(0)).Expect(there, unix.EEXIST)
		}
		c.Place(there)
		c.Call(unix.SYS_CLOSE, parent.Value()) // of a deep path there may be many
		above = path.Join(above, part)
	}
}

// workingDirectory makes the process's working directory where an image lacks
// it: image builders name directories that nothing has made yet.
func (c *compiler) workingDirectory() {
	if c.p.Process.Cwd == "" || c.p.Process.Cwd == "/" {
		return
	}
	c.Because(c.p.Process.At+"/cwd", "make the working directory "+quote(c.p.Process.Cwd))
	t := target{name: c.p.Process.Cwd, dir: true, flags: unix.O_PATH, fd: c.Cell(), mount: -1}
	done := c.NewLabel()
	c.reach(&t, c.spot(t.name), done)
	c.Place(done)
	c.close(t.fd)
}
