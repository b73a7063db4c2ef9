package compile

import (
	"slices"
	"strings"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Flags of the new mount API that x/sys names too, gathered for the two uses here.
const (
	cloneTree    = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC
	moveByHandle = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
)

// openRoot takes the mount tree out of the host's hands and makes a copy of the
// container's root the place that everything else hangs below.
func (c *compiler) openRoot() {
	c.Because("/linux/rootfsPropagation", "set the propagation of the mount namespace")
	if !c.rootShared() {
		c.setPropagation("/", unix.MS_SLAVE|unix.MS_REC)
	} else if c.f.RootParent != "" {
		// The copies of the host's mounts stay in their peer groups, so that what
		// is mounted on a shared volume reaches the host. Only the mount that holds
		// the root must leave its group, or pivot_root refuses.
		c.setPropagation(c.f.RootParent, unix.MS_PRIVATE)
	}
	c.root = c.Cell()
	c.Because("/root/path", "open the root file system "+quote(c.p.Root.Path))
	rootfs := c.CString(c.p.Root.Path)
	c.Call(unix.SYS_OPEN_TREE, cwd, rootfs.Arg(), program.Imm(cloneTree|unix.AT_RECURSIVE)).Into(c.root)
	c.Because("/root/path", "mount the root file system "+quote(c.p.Root.Path))
	c.Call(unix.SYS_MOVE_MOUNT, c.root.Value(), c.empty.Arg(), cwd, rootfs.Arg(),
		program.Imm(unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_SYMLINKS))
	if !c.rootShared() && !c.p.Root.Slave {
		// Or what the host mounts below the directory from now on would be mounted in the
		// container too. The mounts that are there already stay slaves.
		c.changeAttributes(c.root, MountChange{Propagation: unix.MS_PRIVATE})
	}
}

// openPlainRoot is for a container that shares our mount namespace: nothing is mounted,
// and it is changed into its root in the end.
func (c *compiler) openPlainRoot() {
	c.root = c.Cell()
	c.Because("/root/path", "open the root file system "+quote(c.p.Root.Path))
	c.Call(unix.SYS_OPENAT, cwd, c.CString(c.p.Root.Path).Arg(), program.Int(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)).Into(c.root)
}

func (c *compiler) setPropagation(at string, flags uintptr) *program.Op {
	return c.Call(unix.SYS_MOUNT, program.Int(0), c.CString(at).Arg(), program.Int(0), program.Imm(uint64(flags)), program.Int(0))
}

// openSources opens the sources of bind mounts before we stop being the
// runtime's user, where a user namespace makes that a difference, and before we leave the
// host's mount namespace, where ours has no copy of it.
func (c *compiler) openSources() {
	c.binds = make([]program.Cell, len(c.p.Mounts))
	if c.p.Namespace(specs.UserNamespace) == nil && !c.f.OwnTree {
		return
	}
	for i := range c.p.Mounts {
		m := &c.p.Mounts[i]
		if !m.Bind || m.Inside != "" || c.f.Sources[i].FD != 0 {
			continue
		}
		tree := c.Cell()
		c.binds[i] = tree
		if c.f.OwnTree {
			c.openSource(m, tree)
			c.leaveHost(tree)
			continue
		}
		denied, opened := c.NewLabel(), c.NewLabel()
		c.openSource(m, tree).Expect(denied, unix.EACCES)
		c.Place(opened)
		// The user that we still are has no rights over files whose owner the user namespace
		// does not map: the way may lead through a home that only its owner may enter.
		c.aside(denied, opened, func() { c.askForSource(i, tree) })
	}
}

func (c *compiler) openSource(m *plan.Mount, into program.Cell) *program.Op {
	c.Because(m.At, describe(m))
	flags := uint64(cloneTree)
	if m.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	return c.Call(unix.SYS_OPEN_TREE, cwd, c.CString(m.Source).Arg(), program.Imm(flags)).Into(into)
}

// openInside opens a source that lies below an earlier mount.
func (c *compiler) openInside(m *plan.Mount) program.Cell {
	found, tree := c.Cell(), c.Cell()
	c.need(m.Inside, unix.O_PATH, found)
	flags := uint64(cloneTree | unix.AT_EMPTY_PATH)
	if m.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	c.Call(unix.SYS_OPEN_TREE, found.Value(), c.empty.Arg(), program.Imm(flags)).Into(tree)
	c.close(found)
	return tree
}

// targetOfTree is a target for a source of which only the kernel knows by now whether it
// is a directory.
func (c *compiler) targetOfTree(destination string, tree program.Cell) program.Cell {
	dir := c.Cell()
	file, done := c.NewLabel(), c.NewLabel()
	c.openAt(tree.Value(), ".", c.how(unix.O_PATH|unix.O_DIRECTORY, 0, unix.RESOLVE_BENEATH)).Into(dir).Expect(file, unix.ENOTDIR)
	c.close(dir)
	s := c.spot(destination)
	t := target{name: destination, dir: true, flags: unix.O_PATH | unix.O_DIRECTORY, fd: c.Cell(), mount: c.mounting}
	c.reach(&t, s, done)
	c.Place(done)
	c.aside(file, done, func() {
		plain, made := t, c.NewLabel()
		plain.dir, plain.flags = false, unix.O_PATH
		c.reach(&plain, s, made)
		c.Place(made)
	})
	return t.fd
}

// askForSource lets the runtime open the source of a bind mount, and takes the
// descriptor from its message (unix(7)).
func (c *compiler) askForSource(i int, into program.Cell) {
	c.tell(c.request(program.Request{Kind: program.AskSourceTree, Value: uint64(i)}, false))
	iov := c.Words(c.buf.Arg(), program.Int(1))
	// The header of a control message, and the descriptor of 32 bits.
	const controlLen, headerLen = 24, 16
	control := c.Zeroed(controlLen)
	message := c.Words(program.Int(0), program.Int(0), iov.Arg(), program.Int(1), control.Arg(), program.Int(controlLen), program.Int(0))
	c.Call(unix.SYS_RECVMSG, c.report, message.Arg(), program.Int(unix.MSG_CMSG_CLOEXEC)).ZeroFails()
	c.Set(into, control.Plus(headerLen).Cell().Value())
	c.answer()
}

// describe is what a failing call of a mount is reported as.
func describe(m *plan.Mount) string {
	what := m.Type
	if m.Bind {
		what = m.Source
	}
	if m.Remount {
		return "remount " + m.Destination
	}
	return "mount " + quote(what) + " on " + m.Destination
}

func (c *compiler) mounts() {
	for i := range c.p.Mounts {
		m := &c.p.Mounts[i]
		c.mounting = i
		c.Because(m.At, describe(m))
		switch {
		case m.Remount:
			c.remount(m)
		case m.Cgroup:
			c.mountCgroups(i, m)
		default:
			c.mount(i, m)
		}
		c.release(i)
	}
	c.mounting = -1
}

// mount makes one mount and attaches it.
func (c *compiler) mount(i int, m *plan.Mount) {
	source := c.f.Sources[i]
	var tree program.Cell
	switch {
	case writtenFirst(m):
		tree = c.newFileSystem(m, m.Set&^unix.MOUNT_ATTR_RDONLY)
	case !m.Bind:
		tree = c.newFileSystem(m, m.Set)
	case source.FD != 0:
		tree = c.Cell()
		c.Set(tree, program.Int(int64(source.FD)))
	case c.binds[i] != program.Cell{}:
		tree = c.binds[i]
	case m.Inside != "":
		tree = c.openInside(m)
	default:
		tree = c.Cell()
		c.openSource(m, tree)
	}
	attributes := func() {
		if m.Bind {
			c.bindAttributes(tree, m)
		}
		c.setAttributes(tree, m.RecSet, m.RecClear, unix.AT_RECURSIVE)
	}
	c.whileDetached(attributes)

	var target program.Cell
	if !m.Bind && (m.Type == "proc" || m.Type == "sysfs") {
		// A link in the image must not lead them elsewhere: what is masked and made
		// read-only below them later would be the wrong files (CVE-2019-19921).
		target = c.targetBy(m.Destination, true, unix.RESOLVE_NO_SYMLINKS, nil)
	} else if m.Inside != "" {
		target = c.targetOfTree(m.Destination, tree)
	} else {
		target = c.targetBy(m.Destination, !m.Bind || source.Dir, 0, func(target program.Cell) {
			if m.Type == "tmpfs" && !hasParam(m, "mode") {
				c.sameMode(target, tree)
			}
		})
	}
	if m.CopyUp {
		c.copyUp(i, target, tree)
	}
	c.attach(tree, target)
	c.onceAttached(attributes)
	seal := writtenFirst(m)
	if seal && c.isUsed(i) {
		c.sealed = append(c.sealed, sealing{m, tree})
	} else if seal {
		c.setAttributes(tree, unix.MOUNT_ATTR_RDONLY, 0, 0)
	}
	for _, flags := range m.Propagation {
		c.changeAttributes(tree, MountChange{Propagation: uint64(flags &^ unix.MS_REC), Recursive: flags&unix.MS_REC != 0})
	}
	if m.Type == "proc" && m.Destination == "/proc" {
		c.proc, c.hasPid = tree, true
	}
	c.close(target)
	c.hold(i, tree)
}

// writtenFirst reports whether a mount is made read-only only when it has what is to be
// in it: further mount points, devices, links, what it is filled with, its mode.
func writtenFirst(m *plan.Mount) bool { return m.Type == "tmpfs" && m.ReadOnly() }

// A sealing is a mount that becomes read-only in the end.
type sealing struct {
	mount *plan.Mount
	tree  program.Cell
}

// seal makes mounts read-only that things had to be made in.
func (c *compiler) seal() {
	for _, s := range c.sealed {
		c.Because(s.mount.At, "make "+s.mount.Destination+" read-only")
		c.setAttributes(s.tree, unix.MOUNT_ATTR_RDONLY, 0, 0)
	}
}

// sameMode gives a new tmpfs the mode of the directory that it covers: a private
// directory is not for everybody to write to when it is in memory.
func (c *compiler) sameMode(target, tree program.Cell) {
	// Of struct statx the mode is the 16 bits at offset 28, and 16 bits are what
	// fchmodat(2) takes of its argument (umode_t).
	const statxLen, modeAt = 256, 28
	if c.stat == (program.Addr{}) {
		c.stat = c.Zeroed(statxLen)
	}
	c.Call(unix.SYS_STATX, target.Value(), c.empty.Arg(), program.Int(unix.AT_EMPTY_PATH), program.Int(unix.STATX_MODE), c.stat.Arg())
	c.Call(unix.SYS_FCHMODAT, tree.Value(), c.CString(".").Arg(), c.stat.Plus(modeAt).Cell().Value())
}

func hasParam(m *plan.Mount, name string) bool {
	return slices.ContainsFunc(m.Params, func(p string) bool { return strings.HasPrefix(p, name+"=") })
}

// bindAttributes gives a bind mount the attributes that its words say. What they only
// imply is left where a user namespace may not change it: attributes that a mount came
// into the namespace with are locked (mount_namespaces(7)).
func (c *compiler) bindAttributes(tree program.Cell, m *plan.Mount) {
	loosen := m.Loosen
	if c.f.NoMountSetattr && c.p.Namespace(specs.UserNamespace) != nil {
		loosen = 0 // a refusal is not to be seen there
	}
	op := c.setAttributes(tree, m.Set, m.Clear|loosen, 0)
	if op == nil || loosen == 0 {
		return
	}
	locked, done := c.NewLabel(), c.NewLabel()
	op.Expect(locked, unix.EPERM, unix.EINVAL) // EINVAL for nosymfollow, before Linux 5.14
	c.Place(done)
	c.aside(locked, done, func() { c.setAttributes(tree, m.Set, m.Clear, 0) })
}

// cgroupAttributes gives a mount of cgroups its attributes. It removes none that the
// host has but the access time, a field that has to be cleared to be set. It is private,
// as a mount of its own would be, and not tied to the host's that it is a copy of.
func (c *compiler) cgroupAttributes(tree program.Cell, m *plan.Mount, recursive bool) {
	change := MountChange{Set: m.Set, Clear: (m.Set | m.Clear) & unix.MOUNT_ATTR__ATIME, Propagation: unix.MS_PRIVATE, Recursive: recursive}
	if change.Clear != 0 {
		change.Clear = unix.MOUNT_ATTR__ATIME
	}
	c.changeAttributes(tree, change)
}

// ShownCgroups are the directories that a mount of cgroups shows: of all hierarchies, or
// of the unified one alone where version 2 is asked for on a host that has both.
func ShownCgroups(m *plan.Mount, dirs []CgroupDir) []CgroupDir {
	if m.Type == "cgroup2" {
		if i := slices.IndexFunc(dirs, func(d CgroupDir) bool { return d.Name == "unified" }); i >= 0 {
			return []CgroupDir{{Path: dirs[i].Path}}
		}
	}
	return dirs
}

func (c *compiler) attach(tree, target program.Cell) *program.Op {
	return c.Call(unix.SYS_MOVE_MOUNT, tree.Value(), c.empty.Arg(), target.Value(), c.empty.Arg(), program.Imm(moveByHandle))
}

// remount changes a mount that an earlier entry made, or the root.
func (c *compiler) remount(m *plan.Mount) {
	target := c.Cell()
	c.need(m.Destination, unix.O_PATH, target)
	c.setAttributes(target, m.Set, m.Clear, 0)
	c.setAttributes(target, m.RecSet, m.RecClear, unix.AT_RECURSIVE)
	if len(m.Params) > 0 {
		fs := c.context()
		c.Call(unix.SYS_FSPICK, target.Value(), c.empty.Arg(), program.Int(unix.FSPICK_CLOEXEC|unix.FSPICK_EMPTY_PATH)).Into(fs.fd)
		c.params(fs, m.Params)
		c.fsconfig(fs, unix.FSCONFIG_CMD_RECONFIGURE, program.Int(0), program.Int(0))
		c.close(fs.fd)
	}
	c.close(target)
}

// copyUp lets the runtime fill a new tmpfs with what it is about to cover.
func (c *compiler) copyUp(i int, target, tree program.Cell) {
	var covered program.Cell
	c.askFD(program.AskCopyFrom, uint64(i), func(into program.Addr) {
		covered = into.Cell()
		c.openAt(target.Value(), ".", c.how(unix.O_RDONLY|unix.O_DIRECTORY, 0, unix.RESOLVE_BENEATH)).Into(covered)
	})
	c.close(covered)
	c.askFD(program.AskCopyTo, uint64(i), func(into program.Addr) {
		c.Call(program.Set, tree.Value()).IntoAddr(into)
	})
}
