package compile

import (
	"strings"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// mountCgroups shows the container its own cgroups: bind mounts of its
// directories. That costs no grace period, as a fresh cgroup2 mount in the
// initial cgroup namespace does, and looks the same from a cgroup namespace.
func (c *compiler) mountCgroups(i int, m *plan.Mount) {
	dirs := ShownCgroups(m, c.f.CgroupDirs)
	if len(dirs) == 1 && dirs[0].Tree != "" {
		c.mountCgroupTree(i, m, dirs[0])
		return
	}
	if len(dirs) == 1 && dirs[0].Name == "" {
		tree := c.openCgroup(dirs[0].Path)
		attributes := func() {
			c.cgroupAttributes(tree, m, false)
			c.setAttributes(tree, m.RecSet, m.RecClear, unix.AT_RECURSIVE)
		}
		c.whileDetached(attributes)
		target := c.target(m.Destination, true)
		c.attach(tree, target)
		c.onceAttached(attributes)
		c.close(target)
		c.hold(i, tree)
		return
	}
	// Several hierarchies stand in directories of a small tmpfs, as on the host.
	// The tmpfs is ours alone, so names in it lead nowhere else.
	tree := c.newFileSystem(&plan.Mount{Type: "tmpfs", Source: "tmpfs", Params: []string{"mode=755", "size=64k"}}, m.Set&^unix.MOUNT_ATTR_RDONLY)
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
	c.cgroupAttributes(tree, m, true)
	c.setAttributes(tree, m.RecSet, m.RecClear, unix.AT_RECURSIVE)
	c.close(target)
	c.hold(i, tree)
}

// mountCgroupTree shows a container in the host's cgroup namespace the host's hierarchy,
// since the path of its own cgroup, which /proc/self/cgroup tells, is one in that. It may
// write to its own alone.
func (c *compiler) mountCgroupTree(i int, m *plan.Mount, dir CgroupDir) {
	tree := c.openCgroup(dir.Tree)
	target := c.target(m.Destination, true)
	c.attach(tree, target)
	others := *m
	others.Set |= unix.MOUNT_ATTR_RDONLY
	c.cgroupAttributes(tree, &others, false)
	own := c.openCgroup(dir.Path)
	name := c.CString(strings.TrimPrefix(dir.Path, strings.TrimSuffix(dir.Tree, "/")+"/")).Arg()
	c.Call(unix.SYS_MOVE_MOUNT, own.Value(), c.empty.Arg(), tree.Value(), name, program.Imm(unix.MOVE_MOUNT_F_EMPTY_PATH))
	c.cgroupAttributes(own, m, false)
	c.setAttributes(tree, m.RecSet, m.RecClear, unix.AT_RECURSIVE)
	c.close(own)
	c.close(target)
	c.hold(i, tree)
}

// openCgroups opens all directories of the host's that mountCgroups asks for.
func (c *compiler) openCgroups() {
	var early []program.Cell
	for i := range c.p.Mounts {
		m := &c.p.Mounts[i]
		if !m.Cgroup {
			continue
		}
		c.Because(m.At, describe(m))
		for _, dir := range ShownCgroups(m, c.f.CgroupDirs) {
			if dir.Tree != "" {
				early = append(early, c.openCgroup(dir.Tree))
			}
			early = append(early, c.openCgroup(dir.Path))
		}
	}
	c.cgroups = early
}

// openCgroup opens a directory of the host's, or takes the next of those opened early.
func (c *compiler) openCgroup(path string) program.Cell {
	if len(c.cgroups) > 0 {
		tree := c.cgroups[0]
		c.cgroups = c.cgroups[1:]
		return tree
	}
	tree := c.Cell()
	c.Call(unix.SYS_OPEN_TREE, cwd, c.CString(path).Arg(), program.Imm(cloneTree)).Into(tree)
	return tree
}
