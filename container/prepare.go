package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/compile"
	"github.com/berth-runtime/berth/internal/caps"
	"github.com/berth-runtime/berth/internal/mountinfo"
	"github.com/berth-runtime/berth/plan"
	"github.com/berth-runtime/berth/rootfs"
	"github.com/berth-runtime/berth/spec"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// prepare finds out and opens what the Program needs of us.
func (m *maker) prepare() error {
	defer m.runtime.Trace.Begin("prepare what the init needs").End()
	p := m.plan
	m.spawn.Stdio = m.o.Stdio
	m.spawn.Preserved = m.o.Preserve
	m.spawn.Gate, m.spawn.Root, m.spawn.Cgroup = -1, -1, -1
	f := &m.spawn.Facts
	f.LastCap = lastCap()
	f.NoMountSetattr = m.host.NoMountSetattr
	// In a pid namespace that was there before somebody else could look as well, and
	// reach for our descriptors (CVE-2016-9962).
	f.Visible = !m.privileged() && p.Makes(specs.PIDNamespace)
	if err := m.checkRoot(); err != nil {
		return err
	}
	if err := m.namespaces(m.openNamespace); err != nil {
		return err
	}
	if err := m.sources(); err != nil {
		return err
	}
	if err := m.hostDevices(); err != nil {
		return err
	}
	if p.Root.Discard {
		layers, err := layersOf(p)
		if err != nil {
			return err
		}
		f.Layers = layers
	}
	m.home(&p.Process)
	if m.o.Listen > 0 {
		p.Process.Env = listenEnv(p.Process.Env, m.o.Listen)
	}
	f.ChownStdio = chownStdio(m.o.Stdio, &p.Process, p.IDs.UID)
	if m.group != nil {
		if err := m.group.enter(&m.spawn); err != nil {
			return err
		}
		f.CgroupDirs = m.group.dirs()
	} else if p.Cgroup.Unit != nil {
		awaitUnit(p, m.host, f)
	} else {
		f.CgroupDirs = hostCgroupDirs(m.host)
	}
	if m.o.Attached {
		return nil
	}
	return m.makeGate()
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
		return fmt.Errorf("config.json /root/path: root file system %q: %w", m.plan.Root.Path, err)
	}
	if m.plan.Root.Propagation&unix.MS_SHARED != 0 {
		m.spawn.Facts.RootParent, err = mountPointOf(m.plan.Root.Path)
	}
	return err
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
		return "", fmt.Errorf("find the mount of %q: /proc/self/mountinfo has none above it", real)
	}
	return holding.Point, nil
}

// sources looks at the sources of bind mounts: whether a missing target is to be
// a directory or a file.
func (m *maker) sources() error {
	m.spawn.Facts.Sources = make([]compile.Source, len(m.plan.Mounts))
	for i := range m.plan.Mounts {
		mount := &m.plan.Mounts[i]
		if !mount.Bind {
			continue
		}
		var st unix.Stat_t
		if err := unix.Stat(mount.Source, &st); err != nil {
			return fmt.Errorf("config.json %s/source: bind mount of %q: %w", mount.At, mount.Source, err)
		}
		m.spawn.Facts.Sources[i].Dir = st.Mode&unix.S_IFMT == unix.S_IFDIR
		if mount.IDMap != nil {
			fd, err := idmapped(mount, m.plan)
			if err != nil {
				return err
			}
			m.fds = append(m.fds, fd)
			if m.spawn.Mounts == nil {
				m.spawn.Mounts = map[int]int{}
			}
			m.spawn.Mounts[i] = fd
		}
	}
	return nil
}

// namespaces decides who makes and enters which namespace. What our clone can
// make at once it does; what has to wait for something that is entered first is
// left to the Program.
func (m *maker) namespaces(open func(*plan.Namespace) (int, error)) error {
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
		fd, err := open(n)
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
	if newUser {
		f.RootUID, f.RootGID = rootOf(m.plan.IDs.UID), rootOf(m.plan.IDs.GID)
		f.KeepGroups = !m.privileged() && mapsOnlySelf(&m.plan.IDs)
	}
	return nil
}

// privileged reports whether we have the rights of the host's root.
func (m *maker) privileged() bool { return m.host.UID == 0 }

// mapsOnlySelf reports whether the mappings are what anyone may write: one id
// to one's own.
func mapsOnlySelf(ids *plan.IDMaps) bool {
	return len(ids.UID) == 1 && ids.UID[0].Size == 1 && int(ids.UID[0].HostID) == os.Geteuid() &&
		len(ids.GID) == 1 && ids.GID[0].Size == 1 && int(ids.GID[0].HostID) == os.Getegid()
}

// rootOf is the id that files are made with: 0 where it is mapped.
func rootOf(maps []specs.LinuxIDMapping) uint32 {
	for _, m := range maps {
		if m.ContainerID == 0 {
			return 0
		}
	}
	if len(maps) > 0 {
		return maps[0].ContainerID
	}
	return 0
}

func sysMap(maps []specs.LinuxIDMapping) []syscall.SysProcIDMap {
	list := make([]syscall.SysProcIDMap, len(maps))
	for i, m := range maps {
		list[i] = syscall.SysProcIDMap{ContainerID: int(m.ContainerID), HostID: int(m.HostID), Size: int(m.Size)}
	}
	return list
}

// openNamespace opens a namespace by its path, and makes sure that it is one of
// its type.
func (m *maker) openNamespace(n *plan.Namespace) (int, error) {
	fd, err := unix.Open(n.Path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("config.json %s/path: open the %s namespace %q: %w", n.At, n.Type, n.Path, err)
	}
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("config.json %s/path: %q is no namespace: %w", n.At, n.Path, err)
	}
	if uintptr(kind) != n.Flag {
		unix.Close(fd)
		return -1, fmt.Errorf("config.json %s/path: %q is not a namespace of type %s", n.At, n.Path, n.Type)
	}
	m.fds = append(m.fds, fd)
	return fd, m.keepHostsParameters(n, fd)
}

// keepHostsParameters refuses kernel parameters of a namespace that the container
// joins and that is ours: they would be set for the host.
func (m *maker) keepHostsParameters(n *plan.Namespace, fd int) error {
	i := slices.IndexFunc(m.plan.Sysctls, func(s plan.Setting) bool { return spec.SysctlNamespace(s.File) == n.Type })
	if i < 0 {
		return nil
	}
	// Those that have parameters are called in /proc as in the config, but for this one.
	name := string(n.Type)
	if n.Type == specs.NetworkNamespace {
		name = "net"
	}
	var theirs, ours unix.Stat_t
	err := unix.Fstat(fd, &theirs)
	if err == nil {
		err = unix.Stat("/proc/self/ns/"+name, &ours)
	}
	if err != nil {
		return fmt.Errorf("config.json %s/path: look at the %s namespace %q: %w", n.At, n.Type, n.Path, err)
	}
	if theirs.Dev == ours.Dev && theirs.Ino == ours.Ino {
		return fmt.Errorf("config.json %s: it would change the host, whose %s namespace %q is (leave it out, or join another)", m.plan.Sysctls[i].At, n.Type, n.Path)
	}
	return nil
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
// those of somebody else that are files of their own. A device such as
// /dev/null is the host's and stays as it is, and so does a file that is only read.
// The terminal that our caller sits at is his alone: whoever owned it, in the container
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

// home gives the process HOME by its user's entry in the container's passwd
// file, where the config gives none.
func (m *maker) home(p *plan.Process) {
	if hasHome(p.Env) {
		return
	}
	var u rootfs.User
	file, err := m.openInContainer("/etc/passwd")
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	case err == nil:
		defer file.Close()
		if u, err = rootfs.UserByID(file, p.UID); err != nil {
			err = fmt.Errorf("%w in %s", err, file.Name())
		}
	}
	p.Env = withHome(p.Env, m.runtime.homeOf(u, err))
}

func withHome(env []string, home string) []string {
	rest := slices.DeleteFunc(slices.Clone(env), func(e string) bool { return e == "HOME=" })
	return append(rest, "HOME="+home)
}

// hasHome reports whether an environment says where home is. An empty value is
// what clients write that know nothing of it.
func hasHome(env []string) bool {
	return slices.ContainsFunc(env, func(e string) bool { return strings.HasPrefix(e, "HOME=") && e != "HOME=" })
}

// openInContainer opens a file of the container that is being made: in its root,
// or in the source of the bind mount that will cover it.
func (m *maker) openInContainer(name string) (*rootfs.File, error) {
	for i := len(m.plan.Mounts) - 1; i >= 0; i-- {
		mount := &m.plan.Mounts[i]
		if !mount.Bind {
			continue
		}
		if mount.Destination == name {
			return rootfs.OpenFile(mount.Source)
		}
		if rest, ok := strings.CutPrefix(name, mount.Destination+"/"); ok {
			return openIn(mount.Source, rest)
		}
	}
	return openIn(m.plan.Root.Path, name)
}

func openIn(dir, name string) (*rootfs.File, error) {
	root, err := rootfs.Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(name)
}

// listen rewrites what socket activation tells the process: it will be process 1
// of its pid namespace (sd_listen_fds(3)).
func listenEnv(env []string, n int) []string {
	return append(slices.Clip(env), "LISTEN_FDS="+strconv.Itoa(n), "LISTEN_PID=1")
}
