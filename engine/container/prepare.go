package container

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/caps"
	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	"github.com/berth-runtime/berth/internal/sys"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// prepare finds out what the Program needs of us, and opens it. It is all that Create and
// Foresee do to a Plan, who differ in their reach.
func (m *maker) prepare(r reach) error {
	defer m.runtime.Trace.Begin("prepare what the init needs").End()
	p := m.plan
	m.spawn.Stdio = m.o.Stdio
	m.spawn.Preserved = m.o.Preserve
	m.spawn.Trace = m.runtime.Trace
	m.spawn.Gate, m.spawn.Root, m.spawn.Cgroup = -1, -1, -1
	f := &m.spawn.Facts
	f.LastCap = lastCap()
	f.NoMountSetattr = m.host.NoMountSetattr
	// In an existing pid namespace other processes could look as well, and
	// reach for our descriptors (CVE-2016-9962).
	f.Visible = !m.privileged() && p.Makes(specs.PIDNamespace)
	f.OwnScore = m.host.UID != 0 || m.host.InUserNS
	if err := r.failed(m.checkRoot()); err != nil {
		return err
	}
	if err := m.namespaces(r); err != nil {
		return err
	}
	if err := m.sources(r); err != nil {
		return err
	}
	if err := m.boundDevices(r); err != nil {
		return err
	}
	if p.Root.Discard {
		layers, err := layersOf(p)
		if err := r.failed(err); err != nil {
			return err
		}
		f.Layers = layers
	}
	f.ChownStdio = chownStdio(m.o.Stdio, &p.Process, p.IDs.UID)
	switch {
	case p.Cgroup.Unit != nil:
		awaitUnit(p, m.host, f)
	case m.Cgroup.Path == "":
		if slices.ContainsFunc(p.Mounts, func(mount plan.Mount) bool { return mount.Cgroup }) {
			f.CgroupDirs = callersCgroupDirs(m.host.Cgroups)
		}
	default:
		if err := r.enterGroup(); err != nil {
			return err
		}
	}
	m.showCgroupTree(f.CgroupDirs)
	if m.o.Attached {
		return nil
	}
	gate, err := r.gate()
	m.spawn.Gate = gate
	return err
}

// checkRoot looks at the root file system before anything is cloned, since a
// missing one is the commonest mistake.
func (m *maker) checkRoot() error {
	var st unix.Stat_t
	err := unix.Stat(m.plan.Root.Path, &st)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		err = unix.ENOTDIR
	}
	if err != nil {
		return fmt.Errorf("config.json: /root/path: root file system %q: %w", m.plan.Root.Path, err)
	}
	if m.plan.NoPivot && m.plan.Makes(specs.MountNamespace) {
		if m.spawn.Facts.HostMounts, err = hostMounts(); err != nil {
			return err
		}
	}
	if m.plan.Root.Propagation&unix.MS_SHARED != 0 {
		m.spawn.Facts.RootParent, err = mountPointOf(m.plan.Root.Path)
	}
	return err
}

// hostMounts lists what is mounted in the root of our mount namespace, the last first,
// and once for each mount on top of another. What lies further down goes with that.
func hostMounts() ([]string, error) {
	mounts, err := mountinfo.Of("self")
	if err != nil {
		return nil, err
	}
	root, ok := mountinfo.Holding(mounts, "/")
	if !ok {
		return nil, fmt.Errorf("find the mounts of the host: %w", notInTable("/"))
	}
	var points []string
	in := map[int]string{} // where those are
	for _, m := range mounts {
		at, on := in[m.Parent]
		if m.Point != "/" && (m.Parent == root.ID || on && at == m.Point) {
			in[m.ID] = m.Point
			points = append(points, m.Point)
		}
	}
	slices.Reverse(points)
	return points, nil
}

// mountPointOf finds the mount point that a path lies on.
func mountPointOf(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("find the mount of %q: %w", path, err)
	}
	mounts, err := mountinfo.Of("self")
	if err != nil {
		return "", err
	}
	holding, ok := mountinfo.Holding(mounts, real)
	if !ok {
		return "", fmt.Errorf("find the mount of %q: %w", real, notInTable(real))
	}
	return holding.Point, nil
}

// notInTable is why no mount that we see holds a path: the one that does is outside of a chroot.
func notInTable(path string) error {
	if !launch.RootIsMount() {
		return launch.ErrChroot
	}
	return fmt.Errorf("/proc/self/mountinfo has no mount that holds %s", path)
}

// namespaces decides which process creates and enters which namespace. What our clone can
// make at once it does; what has to wait for something that is entered first is
// left to the Program.
func (m *maker) namespaces(r reach) error {
	f := &m.spawn.Facts
	var made uintptr
	userPath := false
	for i := range m.plan.Namespaces {
		n := &m.plan.Namespaces[i]
		if n.Path == "" {
			if n.Type != specs.CgroupNamespace {
				made |= n.Flag
			}
			continue
		}
		fd, err := r.namespace(n)
		if err != nil {
			return err
		}
		m.spawn.Joins = append(m.spawn.Joins, compile.Join{FD: fd, Flag: n.Flag, At: n.At, Text: "join the " + string(n.Type) + " namespace " + n.Path})
		userPath = userPath || n.Type == specs.UserNamespace
		f.Fork = f.Fork || n.Type == specs.PIDNamespace
	}
	// With the host's rights other namespaces are entered before the user
	// namespace, which may have none over them; without, only the user
	// namespace gives the rights to enter the others.
	first := !m.privileged()
	slices.SortStableFunc(m.spawn.Joins, func(a, b compile.Join) int {
		rank := func(j compile.Join) int {
			if (j.Flag == unix.CLONE_NEWUSER) == first {
				return 0
			}
			return 1
		}
		return rank(a) - rank(b)
	})
	// Those who are in it have to see nothing of the set-up. A createContainer hook is a
	// process of the caller's there in any case, and is told which one the container's is.
	f.Outside = f.Fork && !m.plan.Init && len(m.plan.Hooks.CreateContainer) == 0 && host.ChoosesPids()
	if made&unix.CLONE_NEWTIME != 0 {
		f.Fork = true
	}
	if m.plan.Init {
		// Made from outside of the pid namespace, both processes.
		f.Fork, m.spawn.Minded = true, true
	}
	newUser := made&unix.CLONE_NEWUSER != 0
	// A user namespace is always the Program's own doing. Made by our clone, the
	// execve of the init would take its rights again: its user has no name in the
	// namespace yet, so it is not root there (capabilities(7)).
	f.MapIDs = newUser
	switch {
	case f.MapIDs || userPath:
		f.NewNamespaces = made
		f.Fork = f.Fork || made&unix.CLONE_NEWPID != 0
	default:
		m.spawn.CloneFlags = made &^ unix.CLONE_NEWTIME
		f.NewNamespaces = made & unix.CLONE_NEWTIME
		if f.Fork && made&unix.CLONE_NEWPID != 0 {
			// The fork must be the one that becomes process 1.
			m.spawn.CloneFlags &^= unix.CLONE_NEWPID
			f.NewNamespaces |= unix.CLONE_NEWPID
		}
	}
	if m.ownTree() {
		f.OwnTree = true
		m.spawn.CloneFlags &^= unix.CLONE_NEWNS
	}
	if newUser {
		f.RootUID, f.RootGID = m.plan.IDs.Root()
		f.KeepGroups = !m.privileged() && mapsOnlySelf(&m.plan.IDs)
	}
	return nil
}

// ownTree reports whether the mount namespace can do without a copy of the host's mounts. Not where
// something else than the Program looks for the host's files in it (hooks of the creation do, as
// those of nvidia, and a minder would keep the host's root), where a procfs is mounted only beside
// one that is there already (mount_too_revealing in fs/namespace.c), where mounts stay in their
// peer groups but for those beside the root, and where all sources at once would be too many
// descriptors.
func (m *maker) ownTree() bool {
	const fewMounts = 128
	p, f := m.plan, &m.spawn.Facts
	//lint:ignore SA1019 deprecated is not gone: clients write prestart hooks, for nvidia most of all
	hooks := len(p.Hooks.Prestart) + len(p.Hooks.CreateRuntime) + len(p.Hooks.CreateContainer)
	return p.Makes(specs.MountNamespace) && p.Namespace(specs.UserNamespace) == nil && m.privileged() && !m.host.InUserNS &&
		hooks == 0 && !f.Fork && !m.spawn.Minded && !p.NoPivot && !p.Root.Discard && !f.NoMountSetattr &&
		p.Root.Propagation&unix.MS_SHARED == 0 && len(p.Mounts) <= fewMounts && sys.HasTreeNamespaces()
}

// privileged reports whether we have the rights of the host's root.
func (m *maker) privileged() bool { return m.host.UID == 0 }

// mapsOnlySelf reports whether the mappings are what anyone may write: one id
// to one's own.
func mapsOnlySelf(ids *plan.IDMaps) bool {
	return len(ids.UID) == 1 && ids.UID[0].Size == 1 && int(ids.UID[0].HostID) == os.Geteuid() &&
		len(ids.GID) == 1 && ids.GID[0].Size == 1 && int(ids.GID[0].HostID) == os.Getegid()
}

// lastCap finds the highest capability of this kernel. Those without a name
// here are still to be dropped.
func lastCap() int {
	last := caps.Last
	for last < 62 {
		if _, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(last+1), 0, 0, 0); err != nil {
			break
		}
		last++
	}
	return last
}

// chownStdio says which standard streams are to be given to the process's user:
// another owner's that are separate files. A device such as
// /dev/null is the host's and stays as it is, and so does a file that is only read.
// The caller's terminal stays the caller's: an owner of it, in the container
// or not, could go on to read what is typed there when the container is long gone.
func chownStdio(stdio [3]uintptr, p *plan.Process, ids []specs.LinuxIDMapping) (chown [3]bool) {
	if p.Terminal {
		return chown
	}
	user := hostID(p.UID, ids)
	for i, fd := range stdio {
		var st unix.Stat_t
		if unix.Fstat(int(fd), &st) != nil || st.Uid == user {
			continue
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFIFO, unix.S_IFSOCK:
			chown[i] = true
		case unix.S_IFREG:
			flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
			chown[i] = err == nil && flags&unix.O_ACCMODE != unix.O_RDONLY
		case unix.S_IFCHR:
			chown[i] = unix.Major(st.Rdev) >= 136 && unix.Major(st.Rdev) <= 143 && // pseudo terminals
				!isControlling(int(fd))
		}
	}
	return chown
}

// isControlling reports whether a terminal is the one that controls our session: of
// others the kernel does not tell the session (tiocgsid in drivers/tty/tty_jobctrl.c).
func isControlling(fd int) bool {
	_, err := unix.IoctlGetInt(fd, unix.TIOCGSID)
	return err == nil
}

// hostID maps an id of the container to the host's.
func hostID(id uint32, maps []specs.LinuxIDMapping) uint32 {
	if len(maps) == 0 {
		return id
	}
	for _, m := range maps {
		if id >= m.ContainerID && id-m.ContainerID < m.Size {
			return m.HostID + (id - m.ContainerID)
		}
	}
	return ^uint32(0)
}
