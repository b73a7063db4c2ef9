package compile

import (
	"strings"

	"github.com/berth-runtime/berth/plan"
	"github.com/berth-runtime/berth/program"
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
	if c.p.Root.Propagation&unix.MS_SHARED == 0 {
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
}

// openPlainRoot is for a container that shares our mount namespace: it is
// changed into its root and no more.
func (c *compiler) openPlainRoot() {
	c.root = c.Cell()
	c.Because("/root/path", "open the root file system "+quote(c.p.Root.Path))
	c.Call(unix.SYS_OPENAT, cwd, c.CString(c.p.Root.Path).Arg(), program.Int(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)).Into(c.root)
}

func (c *compiler) setPropagation(at string, flags uintptr) {
	c.Call(unix.SYS_MOUNT, program.Int(0), c.CString(at).Arg(), program.Int(0), program.Imm(uint64(flags)), program.Int(0))
}

// openSources opens the sources of bind mounts before we stop being the
// runtime's user, where a user namespace makes that a difference.
func (c *compiler) openSources() {
	c.binds = make([]program.Cell, len(c.p.Mounts))
	if c.p.Namespace(specs.UserNamespace) == nil {
		return
	}
	for i := range c.p.Mounts {
		if m := &c.p.Mounts[i]; m.Bind && c.f.Sources[i].FD == 0 {
			c.binds[i] = c.openSource(m)
		}
	}
}

func (c *compiler) openSource(m *plan.Mount) program.Cell {
	c.Because(m.At, describe(m))
	tree := c.Cell()
	flags := uint64(cloneTree)
	if m.Recursive {
		flags |= unix.AT_RECURSIVE
	}
	c.Call(unix.SYS_OPEN_TREE, cwd, c.CString(m.Source).Arg(), program.Imm(flags)).Into(tree)
	return tree
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
		c.Because(m.At, describe(m))
		switch {
		case m.Remount:
			c.remount(m)
		case m.Cgroup:
			c.mountCgroups(m)
		default:
			c.mount(i, m)
		}
	}
}

// mount makes one mount and attaches it.
func (c *compiler) mount(i int, m *plan.Mount) {
	source := c.f.Sources[i]
	var tree program.Cell
	switch {
	case !m.Bind:
		tree = c.newFileSystem(m)
	case source.FD != 0:
		tree = c.Cell()
		c.Set(tree, program.Int(int64(source.FD)))
	case c.binds[i] != program.Cell{}:
		tree = c.binds[i]
	default:
		tree = c.openSource(m)
	}
	attributes := func() {
		if m.Bind {
			c.setAttributes(tree, m.Set, bindClear(m), 0)
		}
		c.setAttributes(tree, m.RecSet, m.RecClear, unix.AT_RECURSIVE)
	}
	c.whileDetached(attributes)

	var target program.Cell
	if !m.Bind && (m.Type == "proc" || m.Type == "sysfs") {
		// A link in the image must not lead them elsewhere: what is masked and made
		// read-only below them later would be the wrong files (CVE-2019-19921).
		target = c.targetBy(m.Destination, true, unix.RESOLVE_NO_SYMLINKS|inRoot)
	} else {
		target = c.target(m.Destination, !m.Bind || source.Dir)
	}
	if m.CopyUp {
		c.copyUp(i, m, tree)
	}
	c.attach(tree, target)
	c.onceAttached(attributes)
	for _, flags := range m.Propagation {
		c.changeAttributes(tree, MountChange{Propagation: uint64(flags &^ unix.MS_REC), Recursive: flags&unix.MS_REC != 0})
	}
	if m.Type == "proc" && m.Destination == "/proc" {
		c.proc, c.hasPid = tree, true
		c.close(target)
		return
	}
	c.close(target)
	c.close(tree)
}

// bindClear says which attributes a bind mount takes away. Words such as rw or
// suid do not loosen what the source's own mount has: clients write rw for each
// writable volume, also where the host has mounted it read-only on purpose. The
// access time has to be cleared to be set.
func bindClear(m *plan.Mount) uint64 {
	if m.Set&unix.MOUNT_ATTR__ATIME != 0 || m.Clear&unix.MOUNT_ATTR__ATIME != 0 {
		return unix.MOUNT_ATTR__ATIME
	}
	return 0
}

// newFileSystem makes a file system and a detached mount of it.
func (c *compiler) newFileSystem(m *plan.Mount) program.Cell {
	fs, tree := c.Cell(), c.Cell()
	c.Call(unix.SYS_FSOPEN, c.CString(m.Type).Arg(), program.Int(unix.FSOPEN_CLOEXEC)).Into(fs)
	if m.Source != "" {
		c.fsString(fs, "source", m.Source)
	}
	if c.p.Label != "" && labelled(m) {
		note := c.Note()
		c.Because("/linux/mountLabel", "label the file system on "+m.Destination+" "+quote(c.p.Label))
		c.fsString(fs, "context", c.p.Label)
		c.Because(note.Pointer, note.Text)
	}
	for _, param := range m.Params {
		if key, value, ok := strings.Cut(param, "="); ok {
			c.fsString(fs, key, value)
		} else {
			c.fsconfig(fs, unix.FSCONFIG_SET_FLAG, c.CString(param).Arg(), program.Int(0))
		}
	}
	if m.ReadOnly() && onDevice(m.Type) {
		// A read-only device can't be opened for writing at all, so the super block
		// must be read-only as well.
		c.fsconfig(fs, unix.FSCONFIG_SET_FLAG, c.CString("ro").Arg(), program.Int(0))
	}
	c.fsconfig(fs, unix.FSCONFIG_CMD_CREATE, program.Int(0), program.Int(0))
	c.Call(unix.SYS_FSMOUNT, fs.Value(), program.Int(unix.FSMOUNT_CLOEXEC), program.Imm(m.Set)).Into(tree)
	c.close(fs)
	return tree
}

func (c *compiler) fsString(fs program.Cell, key, value string) {
	switch key {
	case "context", "fscontext", "defcontext", "rootcontext":
		// Quoted for the commas in them; mount(2) takes the quotes away, fsconfig(2)
		// takes a value as it is.
		value = strings.ReplaceAll(value, `"`, "")
	}
	c.fsconfig(fs, unix.FSCONFIG_SET_STRING, c.CString(key).Arg(), c.CString(value).Arg())
}

func (c *compiler) fsconfig(fs program.Cell, command int64, key, value program.Arg) *program.Op {
	return c.Call(unix.SYS_FSCONFIG, fs.Value(), program.Int(command), key, value, program.Int(0))
}

// labelled says whether a file system takes an SELinux context when it is mounted.
func labelled(m *plan.Mount) bool {
	switch m.Type {
	case "proc", "sysfs", "cgroup", "cgroup2":
		return false // labelled by policy (genfscon)
	}
	for _, p := range m.Params {
		if strings.HasPrefix(p, "context=") {
			return false
		}
	}
	return true
}

// onDevice says whether a file system may live on a device of its own.
func onDevice(fs string) bool {
	switch fs {
	case "proc", "sysfs", "tmpfs", "devpts", "mqueue", "cgroup", "cgroup2", "ramfs", "hugetlbfs", "securityfs", "debugfs", "tracefs", "bpf", "fusectl", "configfs":
		return false
	}
	return true
}

func (c *compiler) attach(tree, target program.Cell) *program.Op {
	return c.Call(unix.SYS_MOVE_MOUNT, tree.Value(), c.empty.Arg(), target.Value(), c.empty.Arg(), program.Imm(moveByHandle))
}

// remount changes a mount that an earlier entry made, or the root.
func (c *compiler) remount(m *plan.Mount) {
	target := c.Cell()
	c.open(m.Destination, unix.O_PATH, target)
	c.setAttributes(target, m.Set, m.Clear, 0)
	c.setAttributes(target, m.RecSet, m.RecClear, unix.AT_RECURSIVE)
	if len(m.Params) > 0 {
		fs := c.Cell()
		c.Call(unix.SYS_FSPICK, target.Value(), c.empty.Arg(), program.Int(unix.FSPICK_CLOEXEC|unix.FSPICK_EMPTY_PATH)).Into(fs)
		for _, param := range m.Params {
			if key, value, ok := strings.Cut(param, "="); ok {
				c.fsString(fs, key, value)
			} else {
				c.fsconfig(fs, unix.FSCONFIG_SET_FLAG, c.CString(param).Arg(), program.Int(0))
			}
		}
		c.fsconfig(fs, unix.FSCONFIG_CMD_RECONFIGURE, program.Int(0), program.Int(0))
		c.close(fs)
	}
	c.close(target)
}

// copyUp lets the runtime fill a new tmpfs with what it is about to cover.
func (c *compiler) copyUp(i int, m *plan.Mount, tree program.Cell) {
	c.askFD(CopyFrom, uint64(i), func(into program.Addr) {
		c.openAt(c.root.Value(), m.Destination, c.how(unix.O_RDONLY|unix.O_DIRECTORY, 0, inRoot)).IntoAddr(into)
	})
	c.askFD(CopyTo, uint64(i), func(into program.Addr) {
		c.Call(program.Set, tree.Value()).IntoAddr(into)
	})
}

// mountCgroups shows the container its own cgroups: bind mounts of its
// directories. That costs no grace period, as a fresh cgroup2 mount in the
// initial cgroup namespace does, and looks the same from a cgroup namespace.
func (c *compiler) mountCgroups(m *plan.Mount) {
	dirs := c.f.CgroupDirs
	if len(dirs) == 1 && dirs[0].Name == "" {
		tree := c.openCgroup(dirs[0].Path)
		attributes := func() {
			c.setAttributes(tree, m.Set, bindClear(m), 0)
			c.setAttributes(tree, m.RecSet, m.RecClear, unix.AT_RECURSIVE)
		}
		c.whileDetached(attributes)
		target := c.target(m.Destination, true)
		c.attach(tree, target)
		c.onceAttached(attributes)
		c.close(target)
		c.close(tree)
		return
	}
	// Several hierarchies stand in directories of a small tmpfs, as on the host.
	// The tmpfs is ours alone, so names in it lead nowhere else.
	tree := c.newFileSystem(&plan.Mount{Type: "tmpfs", Source: "tmpfs", Set: m.Set &^ unix.MOUNT_ATTR_RDONLY, Params: []string{"mode=755", "size=64k"}})
	target := c.target(m.Destination, true)
	c.attach(tree, target)
	for _, dir := range dirs {
		name := c.CString(dir.Name).Arg()
		c.Call(unix.SYS_MKDIRAT, tree.Value(), name, program.Imm(0o755))
		bind := c.openCgroup(dir.Path)
		c.Call(unix.SYS_MOVE_MOUNT, bind.Value(), c.empty.Arg(), tree.Value(), name, program.Imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
		c.close(bind)
		for _, link := range dir.Links {
			c.Call(unix.SYS_SYMLINKAT, name, tree.Value(), c.CString(link).Arg())
		}
	}
	c.setAttributes(tree, m.Set, bindClear(m), unix.AT_RECURSIVE)
	c.setAttributes(tree, m.RecSet, m.RecClear, unix.AT_RECURSIVE)
	c.close(target)
	c.close(tree)
}

func (c *compiler) openCgroup(path string) program.Cell {
	tree := c.Cell()
	c.Call(unix.SYS_OPEN_TREE, cwd, c.CString(path).Arg(), program.Imm(cloneTree)).Into(tree)
	return tree
}
