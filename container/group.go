package container

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/compile"
	"github.com/berth-runtime/berth/host"
	"github.com/berth-runtime/berth/launch"
)

// group is the container's cgroup while it is being worked with.
type group struct{ *cgroup.Group }

// makeGroup makes the container's cgroup and sets its limits. The Record names
// it already.
func (m *maker) makeGroup() error {
	c := &m.plan.Cgroup
	if c.None || c.Unit != nil {
		return nil // startUnit makes it, once there is a process
	}
	// The config or the default names the place, so it is not asked whose it is.
	options := []cgroup.Option{cgroup.Force()}
	if !m.privileged() {
		options = append(options, cgroup.WherePermitted(), cgroup.Supervisor("supervisor"))
	}
	g, err := m.host.Cgroups.Create(c.Path, options...)
	if err != nil {
		if m.mayDoWithout(err) {
			m.Cgroup.Path = ""
			return nil
		}
		return blame(c.At, err)
	}
	m.group = &group{g}
	m.opened = g
	m.Cgroup.Made, m.Cgroup.MadeAll, m.Cgroup.Freezers = g.Made(), g.MadeAll(), g.FreezerFiles()
	if err := m.group.refuseUsed(); err != nil {
		m.group = nil // somebody else's: to undo it would kill what is there
		return blame(c.At, err)
	}
	return m.limitGroup(g)
}

// limitGroup writes what the plan has for the cgroup's files.
func (m *maker) limitGroup(g *cgroup.Group) error {
	c := &m.plan.Cgroup
	differences, err := g.Apply(c.Writes)
	if err != nil {
		return fmt.Errorf("config.json /linux/resources: %w", err)
	}
	for _, d := range differences {
		m.runtime.note("config.json /linux/resources%s", d)
	}
	if c.Devices != nil {
		if err := g.SetDevices(*c.Devices); err != nil {
			return fmt.Errorf("config.json /linux/resources/devices: %w", err)
		}
	}
	if c.Delegate {
		if user := hostID(m.plan.Process.UID, m.plan.IDs.UID); int(user) != m.host.UID {
			return g.Delegate(int(user))
		}
	}
	return nil
}

func blame(at string, err error) error {
	if at == "" {
		return err
	}
	return fmt.Errorf("config.json %s: %w", at, err)
}

// mayDoWithout reports whether the container can go on without a cgroup of its
// own: we are not root, the place is not ours, and no limit was asked for.
func (m *maker) mayDoWithout(err error) bool {
	rootless := m.host.UID != 0 || m.host.InUserNS
	if who := m.runtime.IgnoreCgroupErrors; who == Nobody || who == Rootless && !rootless || len(m.plan.Cgroup.Writes) > 0 {
		return false
	}
	return cgroup.Denied(err) || errors.Is(err, fs.ErrNotExist)
}

// refuseUsed refuses a cgroup that was there and has processes: whatever is done
// to the container would be done to them.
func (g *group) refuseUsed() error {
	if len(g.Made()) > 0 {
		return nil
	}
	pids, err := g.AllProcs()
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		more := ""
		if n := len(pids) - 1; n > 0 {
			more = fmt.Sprintf(" and %d more", n)
		}
		return fmt.Errorf("cgroup %s is in use by process %d%s; a container needs one of its own (name another in linux.cgroupsPath, or leave that out)", g.Path(), pids[0], more)
	}
	return nil
}

// enter lets the child start inside the group: by clone where there is a unified
// hierarchy, by its own hand in the others.
func (g *group) enter(s *launch.Spawn) error {
	fd, err := g.CloneFD()
	if err != nil {
		return err
	}
	s.Cgroup = fd
	s.Facts.Tasks = g.JoinPaths()
	return nil
}

// dirs are the container's directories, as a mount of type cgroup shows them.
func (g *group) dirs() []compile.CgroupDir {
	return cgroupDirs(g.Host(), func(h *cgroup.Hierarchy) string { return path.Join(h.Mountpoint, g.Path()) })
}

// hostCgroupDirs are the host's own hierarchies, for a container without a
// cgroup of its own.
func hostCgroupDirs(h *host.Host) []compile.CgroupDir {
	return cgroupDirs(h.Cgroups, func(h *cgroup.Hierarchy) string { return h.Mountpoint })
}

func cgroupDirs(h *cgroup.Host, place func(*cgroup.Hierarchy) string) []compile.CgroupDir {
	hierarchies := h.Hierarchies()
	if len(hierarchies) == 1 && hierarchies[0].Version == 2 {
		return []compile.CgroupDir{{Path: place(hierarchies[0])}}
	}
	var dirs []compile.CgroupDir
	for _, h := range hierarchies {
		d := compile.CgroupDir{Path: place(h), Name: "unified"}
		if h.Version == 1 {
			// A named hierarchy is called by its name, the others by all their
			// controllers, each of which is also a link (file-hierarchy(7), the
			// layout that programs look for).
			d.Name = h.Name
			if len(h.Controllers) > 0 {
				d.Name = strings.Join(h.Controllers, ",")
			}
			if len(h.Controllers) > 1 {
				d.Links = h.Controllers
			}
		}
		dirs = append(dirs, d)
	}
	return dirs
}

// openGroup opens the container's cgroup again, nil where it has none. A group
// may be closed and used again.
func (c *Container) openGroup() (*cgroup.Group, error) {
	if c.opened != nil {
		return c.opened, nil
	}
	if c.Cgroup.Path == "" {
		return nil, nil
	}
	h, err := cgroup.Detect()
	if err != nil {
		return nil, err
	}
	g, err := h.Open(c.Cgroup.Path, cgroup.Force(), cgroup.Made(c.Cgroup.Made))
	if err != nil {
		return nil, err
	}
	c.opened = g
	return g, nil
}

func (g *group) destroy() error {
	defer g.Close()
	return g.Purge()
}
