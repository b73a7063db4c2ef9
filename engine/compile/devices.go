package compile

import (
	"slices"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// devices makes the device nodes.
func (c *compiler) devices() {
	for i := range c.p.Devices {
		d := &c.p.Devices[i]
		c.Because(d.At, "make the device "+d.Path)
		if d.Bind {
			c.bindDevice(i, d)
			continue
		}
		parent, base := c.parentOf(d.Path)
		c.makeNode(i, d, parent, base)
	}
}

func splitDir(name string) (dir, base string) {
	for i := len(name) - 1; i >= 0; i-- {
		if name[i] == '/' {
			return name[:max(i, 1)], name[i+1:]
		}
	}
	return "/", name
}

func (c *compiler) makeNode(i int, d *plan.Device, parent program.Cell, base string) {
	mode := uint64(d.Mode)
	switch d.Type {
	case 'b':
		mode |= unix.S_IFBLK
	case 'p':
		mode |= unix.S_IFIFO
	default:
		mode |= unix.S_IFCHR
	}
	name := c.CString(base).Arg()
	exists, done := c.NewLabel(), c.NewLabel()
	c.Call(unix.SYS_MKNODAT, parent.Value(), name, program.Imm(mode), program.Imm(unix.Mkdev(d.Major, d.Minor))).Expect(exists, unix.EEXIST)
	if d.UID != 0 || d.GID != 0 {
		c.Call(unix.SYS_FCHOWNAT, parent.Value(), name, program.Int(int64(d.UID)), program.Int(int64(d.GID)), program.Int(unix.AT_SYMLINK_NOFOLLOW))
	}
	c.Place(done)
	c.aside(exists, done, func() {
		// A file that is there already must be that very device. What it is can't be
		// seen from here, so the runtime looks at the descriptor.
		var there program.Cell
		c.askFD(program.AskDevice, uint64(i), func(into program.Addr) {
			there = into.Cell()
			c.openAt(parent.Value(), base, c.how(unix.O_PATH|unix.O_NOFOLLOW, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS)).Into(there)
		})
		c.close(there)
	})
}

// bindDevice mounts a node that was made outside. The mount of the host's own is read-only: a
// container whose ids include the owner's, or that is its user's own, could change the mode, owner
// and times that all others meet. The device can be written to all the same.
func (c *compiler) bindDevice(i int, d *plan.Device) {
	target := func() program.Cell {
		fd := c.target(d.Path, false)
		if d.At != "" {
			c.askFD(program.AskDevice, uint64(i), func(into program.Addr) { c.Set(into.Cell(), fd.Value()) })
		}
		return fd
	}
	if made := slices.IndexFunc(c.f.Devices, func(n Node) bool { return n.Device == i }); made >= 0 {
		tree := c.Cell()
		c.Set(tree, program.Int(int64(c.f.Devices[made].FD)))
		at := target()
		c.attach(tree, at)
		c.close(at)
		c.close(tree)
		return
	}
	tree := c.Cell()
	c.Call(unix.SYS_OPEN_TREE, cwd, c.CString(d.Path).Arg(), program.Imm(cloneTree)).Into(tree)
	change := MountChange{Set: unix.MOUNT_ATTR_RDONLY}
	if c.rootShared() {
		// What is mounted on a copy of a mount of the host's would be mounted there too. Where
		// the root is not shared the copies are slaves already.
		change.Propagation = unix.MS_SLAVE
	}
	protect := func() { c.changeAttributes(tree, change) }
	c.whileDetached(protect)
	at := target()
	c.attach(tree, at)
	c.onceAttached(protect)
	c.close(at)
	c.close(tree)
}

// links makes the usual links of /dev. What an image or a mount has put there
// stays.
func (c *compiler) links() {
	for _, l := range c.p.Links {
		c.Because("", "make the link "+l.Path)
		parent, base := c.parentOf(l.Path)
		there := c.NewLabel()
		c.Call(unix.SYS_SYMLINKAT, c.CString(l.Target).Arg(), parent.Value(), c.CString(base).Arg()).Expect(there, unix.EEXIST)
		c.Place(there)
	}
}

// parentOf opens the directory that holds name, made where it is missing. The
// last one is kept, as most names are in /dev.
func (c *compiler) parentOf(name string) (program.Cell, string) {
	dir, base := splitDir(name)
	if dir != c.dir {
		if c.dir != "" {
			c.close(c.dirFD)
		}
		c.dirFD, c.dir = c.target(dir, true), dir
	}
	return c.dirFD, base
}
