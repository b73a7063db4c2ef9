package container

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/sys"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
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
	// The config or the default names the place, so it is not asked whose it is. What is there
	// stays when the container goes, so what is missing is put on record first, and with it the
	// intent.
	options := []cgroup.Option{cgroup.Adopt(), cgroup.Intent(func(missing []string) error {
		m.Cgroup.Made = missing
		return m.save()
	})}
	if !m.privileged() {
		options = append(options, cgroup.WherePermitted(), cgroup.Supervisor("supervisor"))
	} else if m.host.CgroupBase != "" && m.host.CgroupBase != "/" {
		options = append(options, cgroup.Supervisor("supervisor")) // of the service that is delegated to us
	}
	g, err := m.host.Cgroups.Create(c.Path, options...)
	if err != nil {
		if m.mayDoWithout(err) {
			m.Cgroup.Path, m.Cgroup.Made = "", nil
			return nil
		}
		return blame(c.At, err)
	}
	m.group = &group{g}
	m.opened = g
	m.Cgroup.Made, m.Cgroup.MadeAll, m.Cgroup.Freezers = g.Made(), madeAll(g), freezers(g)
	if err := m.group.refuseUsed(); err != nil {
		// It is another's: to destroy it would kill what is there.
		m.group, m.opened = nil, nil
		for _, dir := range g.Made() {
			_ = unix.Rmdir(dir) // as far as it is empty
		}
		g.Close()
		return blame(c.At, err)
	}
	return m.limitGroup(g)
}

// limitGroup writes what the plan has for the cgroup's files.
func (m *maker) limitGroup(g *cgroup.Group) error {
	c := &m.plan.Cgroup
	if err := m.apply(g, func(w ledger.Write) bool { return !limitsProcesses(w) }); err != nil {
		return err
	}
	if c.Devices != nil {
		if err := g.SetDevices(*c.Devices); err != nil {
			return field("config.json: "+plan.ResourcesAt, err)
		}
	}
	if c.Delegate {
		if user := hostID(m.plan.Process.UID, m.plan.IDs.UID); int(user) != m.host.UID {
			return g.Delegate(int(user))
		}
	}
	return nil
}

// limitsProcesses reports whether a write is the limit of processes. It holds from when
// the container is ready, since some need another process to be made, and 0 is a limit
// that keeps even the first one out.
func limitsProcesses(w ledger.Write) bool { return w.File == "pids.max" }

// apply makes the writes of the plan that are wanted.
func (m *maker) apply(g *cgroup.Group, wanted func(ledger.Write) bool) error {
	writes := slices.DeleteFunc(slices.Clone(m.plan.Cgroup.Writes), func(w ledger.Write) bool { return !wanted(w) })
	differences, err := g.Apply(writes)
	if err != nil {
		return field("config.json: "+plan.ResourcesAt, err)
	}
	for _, d := range differences {
		m.runtime.note("config.json: "+plan.ResourcesAt+"%s", d)
	}
	return nil
}

// field completes the pointer that an error about a limit begins with, below the resources
// object, so that a search for the whole pointer finds the message. Other errors get the object's.
func field(resources string, err error) error {
	if strings.HasPrefix(err.Error(), "/") {
		return fmt.Errorf("%s%w", resources, err)
	}
	return fmt.Errorf("%s: %w", resources, err)
}

func blame(at string, err error) error {
	if at == "" {
		return err
	}
	return fmt.Errorf("config.json: %s: %w", at, err)
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

// withHint tells an ordinary user whose cgroup or limit is refused how to get one.
func (m *maker) withHint(err error) error {
	var of *cgroup.Error
	switch {
	case m.privileged() && !m.host.InUserNS:
		return err
	case errors.Is(err, cgroup.ErrNoController), errors.Is(err, cgroup.ErrNotOwner):
	case errors.As(err, &of) && (cgroup.Denied(err) || errors.Is(err, fs.ErrNotExist)):
	default:
		return err
	}
	if len(m.host.Cgroups.Layout().Legacy) > 0 {
		return fmt.Errorf("%w (this machine's controllers are on cgroup v1, where limits are root's alone to set: run it as root, or without limits)", err)
	}
	return fmt.Errorf("%w (limits need a cgroup of your own: %s, or run it as root)", err, delegatedScope)
}

// refuseUsed refuses a cgroup that was there, in any hierarchy, and has processes:
// whatever is done to the container would be done to them.
func (g *group) refuseUsed() error {
	if madeAll(g.Group) {
		return nil
	}
	pids, err := g.AllProcs()
	if err != nil {
		return err
	}
	if len(pids) > 0 {
		return fmt.Errorf("cgroup %s is in use by %s; a container needs one of its own (name another in linux.cgroupsPath, or leave that out)", g.Path(), processNames(pids))
	}
	return nil
}

// enter lets the child start inside the group: by clone where there is a unified
// hierarchy, by its own hand in the others.
func (g *group) enter(s *spawn) error {
	fd, err := g.CloneFD()
	if err != nil {
		return err
	}
	s.Cgroup, s.Group = fd, ""
	s.Facts.Tasks = tasksFiles(g.Group)
	return nil
}

// enterLate is enter for a group that others may freeze while we clone. What stands still before
// its execve stops the thread that waits for it, which hears no signals and keeps its processor of
// Go's. So the child begins outside, and from there clones itself into the group. Where a filter
// hides clone3 it writes itself into cgroup.procs, which waits for a grace period of RCU (8 to 20
// ms).
func (g *group) enterLate(s *spawn) {
	s.Cgroup, s.Group = -1, g.Directory("unified")
	s.Facts.Tasks = tasksFiles(g.Group)
	if s.Group != "" && !sys.HasClone3() {
		s.Facts.Tasks = append(s.Facts.Tasks, s.Group+"/cgroup.procs")
		s.Group = ""
	}
}

// dirs are the container's directories, as a mount of type cgroup shows them: its caller's
// where it has none, of an ordinary user's on a hybrid host.
func (g *group) dirs() []compile.CgroupDir {
	var callers *cgroup.Group
	dirs := cgroupDirs(g.Host(), func(h *cgroup.Hierarchy) string {
		if dir := g.Directory(keyOf(h)); dir != "" {
			return dir
		}
		if callers == nil {
			callers = ownGroup(g.Host())
		}
		return directoryIn(callers, h)
	})
	if callers != nil {
		callers.Close()
	}
	return dirs
}

// callersCgroupDirs are where the processes of a container without a cgroup of its own are.
func callersCgroupDirs(h *cgroup.Host) []compile.CgroupDir {
	callers := ownGroup(h)
	defer callers.Close()
	return cgroupDirs(h, func(h *cgroup.Hierarchy) string { return directoryIn(callers, h) })
}

// ownGroup is the cgroup that we are in ourselves, without a place where that is not known.
func ownGroup(h *cgroup.Host) *cgroup.Group {
	g, err := h.OfProcess(0, cgroup.Force())
	if err != nil {
		return &cgroup.Group{}
	}
	return g
}

// directoryIn is a group's place in a hierarchy, or the hierarchy's root where it has none.
func directoryIn(g *cgroup.Group, h *cgroup.Hierarchy) string {
	if dir := g.Directory(keyOf(h)); dir != "" {
		return dir
	}
	return h.Mountpoint
}

// keyOf is what Group.Directory knows a hierarchy by.
func keyOf(h *cgroup.Hierarchy) string {
	switch {
	case h.Version == 2:
		return "unified"
	case len(h.Controllers) > 0:
		return h.Controllers[0]
	}
	return "name=" + h.Name
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

// showCgroupTree shows a container that stays in the host's cgroup namespace all of cgroup v2, as
// systemd's rules for containers ask: half a tree would not have the paths of /proc/self/cgroup.
// Not so without the host's rights, where the read-only mount would be all that protects the user's
// other cgroups (CVE-2023-25809).
func (m *maker) showCgroupTree(dirs []compile.CgroupDir) {
	if len(dirs) != 1 || dirs[0].Name != "" || m.Cgroup.Path == "" || m.plan.Namespace(specs.CgroupNamespace) != nil ||
		m.plan.Namespace(specs.UserNamespace) != nil || !m.privileged() {
		return
	}
	dirs[0].Tree = m.host.Cgroups.Unified().Mountpoint
}

// OpenGroup opens the container's cgroup again, nil where it has none. A group
// may be closed and used again.
func (c *Container) OpenGroup() (*cgroup.Group, error) {
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
	// A unit's cgroup is systemd's, and is removed with the unit; of what is left then, nothing was
	// there before.
	adopt := cgroup.Adopt()
	if c.Cgroup.Unit != "" {
		adopt = cgroup.Force()
	}
	g, err := h.Open(c.Cgroup.Path, adopt, cgroup.Made(c.Cgroup.Made))
	if err != nil {
		return nil, err
	}
	c.opened = g
	return g, nil
}

// undoGroup removes the unit and the cgroup of a container that could not be made, unless others
// live there.
func (m *maker) undoGroup() error {
	err := m.undoUnit()
	if m.group == nil {
		return err
	}
	defer m.group.Close()
	left, err2 := m.leftToOthers(m.group.Group, true)
	if !left && err2 == nil {
		err2 = m.endGroup(m.group.Group)
	}
	return errors.Join(err, err2)
}

func (m *maker) groupFrozen() bool {
	frozen, err := m.group.Frozen()
	return err == nil && frozen
}
