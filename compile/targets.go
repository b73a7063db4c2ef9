package compile

import (
	"path"
	"strings"

	"github.com/berth-runtime/berth/program"
	"golang.org/x/sys/unix"
)

// target opens the place where something is to be mounted, and makes it where
// it is missing. The making stands after the end of the Program, as most images
// have what is needed.
func (c *compiler) target(name string, dir bool) program.Cell {
	return c.targetBy(name, dir, inRoot)
}

func (c *compiler) targetBy(name string, dir bool, resolve uint64) program.Cell {
	fd := c.Cell()
	flags := uint64(unix.O_PATH)
	if dir {
		flags |= unix.O_DIRECTORY
	}
	how := c.how(flags, 0, resolve)
	missing, found := c.NewLabel(), c.NewLabel()
	c.openAt(c.root.Value(), name, how).Into(fd).Expect(missing, unix.ENOENT)
	c.Place(found)
	c.aside(missing, found, func() {
		c.makePath(name, dir)
		c.openAt(c.root.Value(), name, how).Into(fd)
	})
	return fd
}

// makePath makes a directory, or an empty file, and all directories above it.
// Each step opens the one before inside the root, so a link on the way is
// followed as the container would follow it, and a dangling one is an error.
func (c *compiler) makePath(name string, dir bool) {
	parts := strings.Split(relative(name), "/")
	above := "/"
	parent := c.Cell()
	for i, part := range parts {
		there := c.NewLabel()
		c.open(above, unix.O_PATH|unix.O_DIRECTORY, parent)
		if i < len(parts)-1 || dir {
			c.Call(unix.SYS_MKDIRAT, parent.Value(), c.CString(part).Arg(), program.Imm(0o755)).Expect(there, unix.EEXIST)
		} else {
			c.Call(unix.SYS_MKNODAT, parent.Value(), c.CString(part).Arg(), program.Imm(unix.S_IFREG|0o644), program.Int(0)).Expect(there, unix.EEXIST)
		}
		c.Place(there)
		c.close(parent)
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
	fd := c.Cell()
	missing, found := c.NewLabel(), c.NewLabel()
	c.open(c.p.Process.Cwd, unix.O_PATH, fd).Expect(missing, unix.ENOENT)
	c.close(fd)
	c.Place(found)
	c.aside(missing, found, func() { c.makePath(c.p.Process.Cwd, true) })
}
