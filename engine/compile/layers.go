package compile

import (
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/program"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// LayerKind says what a Layer is made of.
type LayerKind int

const (
	// Merged is an overlay of a directory of the host and one in memory, which is empty
	// unless the runtime puts something there (AskScratch).
	// Where the kernel refuses that, it is Fixed.
	Merged LayerKind = iota
	// Fixed is a file or directory of the host, read-only.
	Fixed
	// Fresh is an empty directory in memory: the root only.
	Fresh
	// Directory, Link and Plug are made in what is below: a directory, a symbolic
	// link, and an empty file to mount the host's on.
	Folder
	Link
	Plug
)

// A Layer is one part of a root file system whose writes are discarded. The
// first one is the root, and each comes after what it lies in.
type Layer struct {
	Kind     LayerKind
	Path     string // in the container
	Lower    string // on the host
	Target   string // of a Link
	Mode     uint32
	UID, GID uint32
	Readonly bool // of a Merged one: nothing can be written to it, either
}

// layered stands for the number of a mount where a place is a layer of the root.
const layered = -1

// layers puts the root together.
func (c *compiler) layers() {
	c.Because("/linux/rootfsPropagation", "set the propagation of the mount namespace")
	c.setPropagation("/", unix.MS_SLAVE|unix.MS_REC)
	c.Because(c.p.Root.DiscardAt, "make a place in memory for what is written")
	scratch := c.memory()
	// An overlay takes its upper directory by name only (before Linux 6.13), from
	// a mount that is attached. Lying on top of the old root, this one is not in the
	// way of any name, and goes with the old root.
	c.Call(unix.SYS_MOVE_MOUNT, scratch.Value(), c.empty.Arg(), cwd, c.CString("/").Arg(), program.Imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
	c.Call(unix.SYS_FCHDIR, scratch.Value())
	for i := range c.f.Layers {
		if l := &c.f.Layers[i]; l.Kind == Merged || l.Kind == Fresh {
			c.room(i, l, scratch)
		}
	}
	if c.p.Root.Handed {
		c.Because(c.p.Root.DiscardAt, "hand over what is written")
		c.askFD(program.AskScratch, 0, func(into program.Addr) { c.Call(program.Set, scratch.Value()).IntoAddr(into) })
	}
	for i := range c.f.Layers {
		l := &c.f.Layers[i]
		c.Because("/root/path", "lay "+quote(l.Lower)+" below "+l.Path)
		if i == 0 {
			c.root = c.Cell()
			if l.Kind == Fresh {
				c.Call(unix.SYS_OPEN_TREE, scratch.Value(), c.CString(Upper(i)).Arg(), program.Imm(cloneTree)).Into(c.root)
			} else {
				c.lay(i, l, c.root)
			}
			c.Because("/root/path", "mount the root file system "+quote(c.p.Root.Path))
			c.Call(unix.SYS_MOVE_MOUNT, c.root.Value(), c.empty.Arg(), cwd, c.CString(c.p.Root.Path).Arg(),
				program.Imm(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS))
			continue
		}
		name := c.CString(relative(l.Path)).Arg()
		switch l.Kind {
		case Folder:
			c.Call(unix.SYS_MKDIRAT, c.root.Value(), name, program.Imm(uint64(l.Mode)))
		case Link:
			c.Call(unix.SYS_SYMLINKAT, c.CString(l.Target).Arg(), c.root.Value(), name)
		case Plug:
			c.Call(unix.SYS_MKNODAT, c.root.Value(), name, program.Imm(unix.S_IFREG|0o644), program.Int(0))
		default:
			tree := c.Cell()
			c.lay(i, l, tree)
			target := c.Cell()
			c.need(l.Path, unix.O_PATH, target)
			c.attach(tree, target)
			c.close(target)
			c.places = append(c.places, place{at: l.Path, tree: tree, mount: layered})
		}
	}
	c.Call(unix.SYS_CHDIR, c.CString("/").Arg())
	c.close(scratch)
}

// memory is a new file system in memory.
func (c *compiler) memory() program.Cell {
	fs, tree := c.context(), c.Cell()
	c.Call(unix.SYS_FSOPEN, c.CString("tmpfs").Arg(), program.Int(unix.FSOPEN_CLOEXEC)).Into(fs.fd)
	c.fsString(fs, "source", "discarded")
	c.fsString(fs, "mode", "755")
	c.fsconfig(fs, unix.FSCONFIG_CMD_CREATE, program.Int(0), program.Int(0))
	c.Call(unix.SYS_FSMOUNT, fs.fd.Value(), program.Int(unix.FSMOUNT_CLOEXEC), program.Int(0)).Into(tree)
	c.close(fs.fd)
	return tree
}

// lay makes a detached mount of one layer.
func (c *compiler) lay(i int, l *Layer, tree program.Cell) {
	made := c.NewLabel()
	if l.Kind == Merged {
		plain := c.NewLabel()
		c.overlay(i, l, tree, plain)
		c.Place(made)
		c.aside(plain, made, func() {
			c.fixed(l, tree)
			c.askValue(program.AskPlain, uint64(i))
		})
		return
	}
	c.fixed(l, tree)
}

// fixed shows the host's files as they are. What is mounted below comes along:
// in a user namespace it can't be left off (mount_namespaces(7)).
func (c *compiler) fixed(l *Layer, tree program.Cell) {
	c.Call(unix.SYS_OPEN_TREE, cwd, c.CString(l.Lower).Arg(), program.Imm(cloneTree|unix.AT_RECURSIVE)).Into(tree)
	c.setAttributes(tree, unix.MOUNT_ATTR_RDONLY, 0, unix.AT_RECURSIVE)
}

// Upper names the directory in memory that has what is written to a layer.
func Upper(layer int) string { return strconv.Itoa(layer) + "u" }

// room makes the directories in memory of a layer.
func (c *compiler) room(i int, l *Layer, scratch program.Cell) {
	name := c.CString(Upper(i)).Arg()
	c.Call(unix.SYS_MKDIRAT, scratch.Value(), name, program.Imm(0o700))
	c.Call(unix.SYS_MKDIRAT, scratch.Value(), c.CString(work(i)).Arg(), program.Imm(0o700))
	// The merged directory is the upper one's, to those who look at it.
	c.Call(unix.SYS_FCHMODAT, scratch.Value(), name, program.Imm(uint64(l.Mode)))
	owned := c.NewLabel()
	// An owner that the user namespace does not know is left as who we are.
	c.Call(unix.SYS_FCHOWNAT, scratch.Value(), name, program.Imm(uint64(l.UID)), program.Imm(uint64(l.GID)), program.Int(0)).
		Expect(owned, unix.EINVAL, unix.EPERM)
	c.Place(owned)
}

func work(layer int) string { return strconv.Itoa(layer) + "w" }

// overlay merges one directory; where that is refused it goes on at plain.
func (c *compiler) overlay(i int, l *Layer, tree program.Cell, plain program.Label) {
	fs := c.Cell()
	c.Call(unix.SYS_FSOPEN, c.CString("overlay").Arg(), program.Int(unix.FSOPEN_CLOEXEC)).Into(fs).Expect(plain, unix.ENODEV, unix.EPERM)
	set := func(key, value string) {
		c.Call(unix.SYS_FSCONFIG, fs.Value(), program.Int(unix.FSCONFIG_SET_STRING), c.CString(key).Arg(), c.CString(value).Arg(), program.Int(0)).
			Expect(plain, unix.EINVAL)
	}
	set("source", "discarded")
	set("lowerdir", escapeLower(l.Lower))
	set("upperdir", Upper(i))
	set("workdir", work(i))
	if c.p.Root.Handed {
		// Whatever the kernel's defaults are: a renamed directory is to be found below its new
		// name with all that is in it, and a changed mode with the contents.
		set("redirect_dir", "nofollow")
		set("metacopy", "off")
	}
	if c.p.Namespace(specs.UserNamespace) != nil {
		// Attributes of trusted.overlay are not for a user namespace (Linux 5.11).
		c.Call(unix.SYS_FSCONFIG, fs.Value(), program.Int(unix.FSCONFIG_SET_FLAG), c.CString("userxattr").Arg(), program.Int(0), program.Int(0)).
			Expect(plain, unix.EINVAL)
	}
	// EINVAL is also said of a file system that has other names than it shows
	// (vfat), of an overlay of an overlay of an overlay, and of a directory below
	// which something is mounted that a user namespace may not uncover.
	c.Call(unix.SYS_FSCONFIG, fs.Value(), program.Int(unix.FSCONFIG_CMD_CREATE), program.Int(0), program.Int(0), program.Int(0)).
		Expect(plain, unix.EINVAL, unix.EPERM, unix.EACCES)
	attributes := int64(0)
	if l.Readonly {
		attributes = unix.MOUNT_ATTR_RDONLY
	}
	c.Call(unix.SYS_FSMOUNT, fs.Value(), program.Int(unix.FSMOUNT_CLOEXEC), program.Int(attributes)).Into(tree)
	c.close(fs)
}

// escapeLower writes a name as the list of lower directories wants it.
func escapeLower(name string) string {
	return strings.NewReplacer(`\`, `\\`, ":", `\:`).Replace(name)
}
