package compile

import (
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// ownTree makes a mount namespace of the root file system, and enters it. It has none of the host's
// mounts, so pivot has nothing to leave: to copy them and to unmount the copies grows with their
// number. What comes from the host is opened before.
func (c *compiler) ownTree() {
	c.openSources()
	c.openCgroups()
	if len(c.p.Masked) > 0 {
		c.Because("", "open what covers masked files")
		c.hostNull = c.Cell()
		c.openNull(c.hostNull)
	}
	c.Because("/root/path", "make a mount namespace of the root file system "+quote(c.p.Root.Path))
	namespace := c.Cell()
	c.Call(unix.SYS_OPEN_TREE, cwd, c.CString(c.p.Root.Path).Arg(),
		program.Imm(sys.OpenTreeNamespace|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)).Into(namespace)
	c.Call(unix.SYS_SETNS, namespace.Value(), program.Imm(unix.CLONE_NEWNS))
	c.Call(unix.SYS_CLOSE, namespace.Value())
	c.root = c.Cell()
	c.Call(unix.SYS_OPENAT, cwd, c.CString("/").Arg(), program.Int(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)).Into(c.root)
	c.leaveHost(c.root)
	if !c.p.Root.Slave {
		// See openRoot.
		c.changeAttributes(c.root, MountChange{Propagation: unix.MS_PRIVATE})
	}
}

// leaveHost takes the copy of a tree of the host's out of the peer groups of the host's mounts. It
// is what openRoot does to the copies of all of them at once.
func (c *compiler) leaveHost(tree program.Cell) {
	c.changeAttributes(tree, MountChange{Propagation: unix.MS_SLAVE, Recursive: true})
}
