package compile

import (
	"github.com/berth-runtime/berth/plan"
	"github.com/berth-runtime/berth/program"
	"golang.org/x/sys/unix"
)

// devices makes the device nodes.
func (c *compiler) devices() {
	dirs := map[string]program.Cell{}
	for i := range c.p.Devices {
		d := &c.p.Devices[i]
		c.Because(d.At, "make the device "+d.Path)
		if d.Bind {
			c.bindDevice(d)
			continue
		}
		dir, base := splitDir(d.Path)
		parent, ok := dirs[dir]
		if !ok {
			parent = c.target(dir, true)
			dirs[dir] = parent
		}
		c.makeNode(i, d, parent, base)
	}
	for _, dir := range dirs {
		c.close(dir)
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
		c.askFD(Device, uint64(i), func(into program.Addr) {
			c.openAt(parent.Value(), base, c.how(unix.O_PATH|unix.O_NOFOLLOW, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_MAGICLINKS)).IntoAddr(into)
		})
	})
}

// bindDevice takes the node from the host.
func (c *compiler) bindDevice(d *plan.Device) {
	tree := c.Cell()
	c.Call(unix.SYS_OPEN_TREE, cwd, c.CString(d.Path).Arg(), program.Imm(cloneTree)).Into(tree)
	target := c.target(d.Path, false)
	c.attach(tree, target)
	c.close(target)
	c.close(tree)
}

// links makes the usual links of /dev. What an image or a mount has put there
// stays.
func (c *compiler) links() {
	var parent program.Cell
	dev := ""
	for _, l := range c.p.Links {
		c.Because("", "make the link "+l.Path)
		dir, base := splitDir(l.Path)
		if dir != dev {
			parent, dev = c.target(dir, true), dir
		}
		there := c.NewLabel()
		c.Call(unix.SYS_SYMLINKAT, c.CString(l.Target).Arg(), parent.Value(), c.CString(base).Arg()).Expect(there, unix.EEXIST)
		c.Place(there)
	}
	if dev != "" {
		c.close(parent)
	}
}
