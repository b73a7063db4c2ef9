package compile

import (
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// maskPaths hides files behind the host's /dev/null and directories behind an
// empty, read-only tmpfs. The null device is the host's own, as the root is not
// changed yet, and not the one that an image may have prepared (CVE-2025-31133).
//
// No mount is prepared that may end up unused: to close the descriptor of a
// detached mount is to unmount it, which waits for RCU.
func (c *compiler) maskPaths() {
	if len(c.p.Masked) > 0 {
		c.dark, c.null = c.Cell(), c.Cell()
	}
	c.eachPath(c.p.Masked, func(path string) string { return "mask " + path }, c.mask)
}

// mask covers one path, by what it is.
func (c *compiler) mask(w way) {
	target, cover := c.Cell(), c.Cell()
	first, file, absent, done := c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.follow(w, unix.O_PATH|unix.O_DIRECTORY, target, file, unix.ENOTDIR, unix.ENOENT, unix.EACCES)
	c.Call(program.Set, c.dark.Value()).ZeroFails().Expect(first, unix.EPIPE)
	c.Call(unix.SYS_OPEN_TREE, c.dark.Value(), c.empty.Arg(), program.Imm(cloneTree|unix.AT_EMPTY_PATH)).Into(cover)
	c.attach(cover, target)
	c.close(cover)
	c.close(target)
	c.Place(done)
	c.aside(first, done, func() {
		// The first directory gets the tmpfs itself, later ones get copies of it.
		made := c.newFileSystem(&plan.Mount{Type: "tmpfs", Source: "tmpfs", Params: []string{"mode=755", "size=0"}},
			unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
		c.Set(c.dark, made.Value())
		c.attach(c.dark, target)
		c.close(target)
	})
	c.aside(file, done, func() {
		// Paths that a kernel or an image does not have are no business of ours.
		c.follow(w, unix.O_PATH, target, absent, unix.ENOENT, unix.ENOTDIR, unix.EACCES)
		c.coverFile(target)
		c.close(target)
		c.Place(absent)
	})
}

// coverFile puts the host's null device over a file. The mount is read-only, as its inode
// is the host's: root inside could change the mode, owner and times of everybody's
// /dev/null. A device can be written to all the same. It is private, as what is mounted on
// a peer of the host's /dev, by a path that is masked twice, would be mounted there too.
//
// The first mount is made so, and later ones are copies of it.
func (c *compiler) coverFile(target program.Cell) {
	cover, first, done := c.Cell(), c.NewLabel(), c.NewLabel()
	c.Call(program.Set, c.null.Value()).ZeroFails().Expect(first, unix.EPIPE)
	c.Call(unix.SYS_OPEN_TREE, c.null.Value(), c.empty.Arg(), program.Imm(cloneTree|unix.AT_EMPTY_PATH)).Into(cover)
	if c.rootShared() {
		// What is attached to a shared mount is made shared itself.
		c.whileDetached(func() { c.changeAttributes(cover, MountChange{Propagation: unix.MS_PRIVATE}) })
	}
	c.attach(cover, target)
	c.close(cover)
	c.Place(done)
	c.aside(first, done, func() {
		if c.f.OwnTree {
			c.Set(c.null, c.hostNull.Value())
		} else {
			c.openNull(c.null)
		}
		change := func() {
			c.changeAttributes(c.null, MountChange{Set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC, Propagation: unix.MS_PRIVATE})
		}
		c.whileDetached(change)
		c.attach(c.null, target)
		c.onceAttached(change)
	})
}

func (c *compiler) openNull(into program.Cell) {
	c.Call(unix.SYS_OPEN_TREE, cwd, c.CString("/dev/null").Arg(), program.Imm(cloneTree)).Into(into)
}

// rootShared reports whether mounts of the host's that are copied are its peers.
func (c *compiler) rootShared() bool { return c.p.Root.Propagation&unix.MS_SHARED != 0 }

// readonlyPaths mounts each path on itself, read-only.
func (c *compiler) readonlyPaths() {
	c.eachPath(c.p.Readonly, func(path string) string { return "make " + path + " read-only" }, func(w way) {
		target, tree := c.Cell(), c.Cell()
		absent := c.NewLabel()
		c.follow(w, unix.O_PATH, target, absent, unix.ENOENT, unix.ENOTDIR, unix.EACCES)
		c.Call(unix.SYS_OPEN_TREE, target.Value(), c.empty.Arg(), program.Imm(cloneTree|unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)).Into(tree)
		readonly := func() { c.setAttributes(tree, unix.MOUNT_ATTR_RDONLY, 0, unix.AT_RECURSIVE) }
		c.whileDetached(readonly)
		c.attach(tree, target)
		c.onceAttached(readonly)
		c.close(tree)
		c.close(target)
		c.Place(absent)
	})
}

// pivot makes the container's root the root of its mount namespace.
func (c *compiler) pivot() {
	if c.p.Root.Readonly {
		c.Because("/root/readonly", "make the root file system read-only")
		c.setAttributes(c.root, unix.MOUNT_ATTR_RDONLY, 0, 0)
	}
	c.Because("/root/path", "enter the root file system")
	if !c.f.OwnTree { // which is our root already
		c.changeRoot()
	}
	c.Call(unix.SYS_CHDIR, c.CString("/").Arg())
	if c.p.Namespace("mount") != nil && c.p.Root.Propagation != unix.MS_SLAVE|unix.MS_REC {
		c.Because("/linux/rootfsPropagation", "set the propagation of the root file system")
		c.setPropagation("/", c.p.Root.Propagation)
	}
}

// changeRoot leaves the host's root for the container's.
func (c *compiler) changeRoot() {
	c.Call(unix.SYS_FCHDIR, c.root.Value())
	here := c.CString(".").Arg()
	switch {
	case c.p.Namespace("mount") == nil:
		c.Call(unix.SYS_CHROOT, here)
	case c.p.NoPivot:
		// For a root on a ramfs, which pivot_root refuses (pivot_root(2)).
		c.Call(unix.SYS_MOVE_MOUNT, c.root.Value(), c.empty.Arg(), cwd, c.CString("/").Arg(), program.Imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
		c.leaveMounts()
		c.Call(unix.SYS_CHROOT, here)
	default:
		// The old root ends up on top of the new one, and is taken off at once; no
		// directory for it is needed. It must be a slave by then, or the unmounting
		// would reach the host: it alone, as mounts below the new root are shared
		// with the host on purpose, and "." would name the new root.
		shared := c.rootShared()
		old := c.Cell()
		if shared {
			c.Call(unix.SYS_OPENAT, cwd, c.CString("/").Arg(), program.Int(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)).Into(old)
		}
		c.Call(unix.SYS_PIVOT_ROOT, here, here)
		if shared {
			c.Call(unix.SYS_FCHDIR, old.Value())
			c.setPropagation(".", unix.MS_SLAVE|unix.MS_REC)
			c.close(old)
		}
		c.Call(unix.SYS_UMOUNT2, here, program.Int(unix.MNT_DETACH))
		if c.p.Root.Discard {
			// That was what layers has put on top of the old root.
			c.Call(unix.SYS_UMOUNT2, here, program.Int(unix.MNT_DETACH))
		}
	}
}

// leaveMounts takes off all that the host has mounted, where the host's root itself can't
// be left behind. It lies below the container's, and who may unmount that, or leave it as
// chroot(2) tells, would find the host's bare procfs, and a way to its sysctls. Names still
// mean the host's: a path begins at our own root, and what lies on top of that is not
// entered.
func (c *compiler) leaveMounts() {
	var cover program.Cell
	if len(c.f.HostMounts) > 0 && c.p.Namespace(specs.UserNamespace) != nil {
		c.Because("", "open what covers the host's files")
		cover = c.Cell() // now, as /dev may be taken off before a file is
		c.Call(unix.SYS_OPEN_TREE, cwd, c.CString("/dev/null").Arg(), program.Imm(cloneTree)).Into(cover)
	}
	for _, point := range c.f.HostMounts {
		c.Because("", "take off the host's "+point)
		at := c.CString(point).Arg()
		locked, gone := c.NewLabel(), c.NewLabel()
		// One that is not mounted here has gone between the look at the host's mounts and the copy
		// of them.
		none := c.NewLabel()
		c.setPropagation(point, unix.MS_SLAVE|unix.MS_REC).Expect(none, unix.EINVAL, unix.ENOENT)
		c.Call(unix.SYS_UMOUNT2, at, program.Int(unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)).Expect(locked, unix.EINVAL)
		c.Place(gone)
		c.aside(locked, gone, func() {
			// To a user namespace the mounts that came with it are one (mount_namespaces(7)),
			// but something can be laid over them.
			over := c.Call(unix.SYS_MOUNT, c.CString("tmpfs").Arg(), at, c.CString("tmpfs").Arg(), program.Imm(unix.MS_RDONLY), c.CString("size=0").Arg())
			if cover == (program.Cell{}) {
				return
			}
			file, covered := c.NewLabel(), c.NewLabel()
			over.Expect(file, unix.ENOTDIR)
			c.Place(covered)
			c.aside(file, covered, func() {
				null := c.Cell()
				c.Call(unix.SYS_OPEN_TREE, cover.Value(), c.empty.Arg(), program.Imm(cloneTree|unix.AT_EMPTY_PATH)).Into(null)
				c.Call(unix.SYS_MOVE_MOUNT, null.Value(), c.empty.Arg(), cwd, at, program.Imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
				c.close(null)
			})
		})
		c.Place(none)
	}
}

// sysctls writes kernel parameters of the container's namespaces. They are
// reached through a procfs of our own, not through the path /proc/sys, which
// what is mounted in the container could lead astray (CVE-2025-52881).
func (c *compiler) sysctls() {
	for i := range c.p.Sysctls {
		s := &c.p.Sysctls[i]
		c.procBeforePivot(s.At)
		c.Because(s.At, "set "+s.File+" to "+quote(s.Value))
		fd := c.Cell()
		c.openAt(c.proc.Value(), "sys/"+s.File, c.how(unix.O_WRONLY, 0, unix.RESOLVE_BENEATH|unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_XDEV)).Into(fd)
		c.write(fd, s.Value)
		c.close(fd)
	}
}

// privateProc has a procfs at hand that nothing is mounted on: the one that was
// mounted on /proc before anything could be put over it is held by its
// descriptor, else a new one is made.
func (c *compiler) privateProc(at string) {
	if c.hasPid {
		return
	}
	c.Because(at, "open a private procfs")
	c.proc = c.newFileSystem(&plan.Mount{Type: "proc"}, 0)
	c.hasPid = true
}

// procBeforePivot is privateProc for who may not make a procfs: the root of a user
// namespace that does not own the pid namespace (proc_get_tree in fs/proc/root.c),
// as with --pid=host of a rootless Podman, and an ordinary user that has not joined the
// container's namespaces yet, who may not even begin (fsopen(2)). Up to the pivot, /proc
// is that of the caller, and what is mounted over parts of it RESOLVE_NO_XDEV refuses to
// enter.
func (c *compiler) procBeforePivot(at string) {
	if c.hasPid {
		return
	}
	c.Because(at, "open a private procfs")
	fs, refused, callers, opened, done := c.Cell(), c.NewLabel(), c.NewLabel(), c.NewLabel(), c.NewLabel()
	c.proc = c.Cell()
	c.Call(unix.SYS_FSOPEN, c.CString("proc").Arg(), program.Int(unix.FSOPEN_CLOEXEC)).Into(fs).Expect(refused, unix.EPERM)
	c.Call(unix.SYS_FSCONFIG, fs.Value(), program.Int(unix.FSCONFIG_CMD_CREATE), program.Int(0), program.Int(0), program.Int(0)).Expect(callers, unix.EPERM)
	c.Call(unix.SYS_FSMOUNT, fs.Value(), program.Int(unix.FSMOUNT_CLOEXEC), program.Int(0)).Into(c.proc).Expect(callers, unix.EPERM)
	c.Place(opened)
	c.close(fs)
	c.Place(done)
	open := func() {
		c.Because(at, "open the caller's procfs")
		c.Call(unix.SYS_OPENAT, cwd, c.CString("/proc").Arg(), program.Int(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)).Into(c.proc)
	}
	c.aside(refused, done, open)
	c.aside(callers, opened, open)
	c.hasPid = true
}
