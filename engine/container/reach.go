package container

import (
	"fmt"
	"path"
	"slices"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/namespace"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// reach is how prepare gets at what a Program needs of the host: Create opens it (opener),
// and Foresee only looks (looker). What both give is in the same order and number.
type reach interface {
	namespace(*plan.Namespace) (fd int, err error)
	idmapped(*plan.Mount) (fd int, err error)
	node(*plan.Device) (fd int, err error)
	// enterGroup lets the child start in the container's own cgroup.
	enterGroup() error
	gate() (fd int, err error)
	// failed is asked whether it can go on after an error.
	failed(error) error
}

// opener keeps what it opens in the maker's list, until the child has its own.
type opener struct{ *maker }

func (m opener) failed(err error) error { return err }

func (m opener) idmapped(mount *plan.Mount) (int, error) {
	fd, err := idmapped(mount, m.plan, m.joinedUserNamespace())
	if err == nil {
		m.fds = append(m.fds, fd)
	}
	return fd, err
}

func (m opener) node(d *plan.Device) (int, error) {
	fd, err := newNode(d, &m.plan.IDs)
	if err == nil {
		m.fds = append(m.fds, fd)
	}
	return fd, err
}

func (m opener) enterGroup() error {
	if err := m.group.enter(&m.spawn); err != nil {
		return err
	}
	m.spawn.Facts.CgroupDirs = m.group.dirs()
	return nil
}

// namespace opens a namespace by its path, and makes sure that it is one of its type.
func (m opener) namespace(n *plan.Namespace) (int, error) {
	fd, err := unix.Open(n.Path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) // a FIFO is no namespace, and not waited at
	if err != nil {
		return -1, fmt.Errorf("config.json: %s/path: open the %s namespace %q: %w", n.At, n.Type, n.Path, err)
	}
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("config.json: %s/path: %q is not a namespace: %w", n.At, n.Path, err)
	}
	if uintptr(kind) != n.Flag {
		unix.Close(fd)
		return -1, fmt.Errorf("config.json: %s/path: %q is not a namespace of type %s", n.At, n.Path, n.Type)
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
	ours, err := namespace.Ours(fd, name)
	if err != nil {
		return fmt.Errorf("config.json: %s/path: look at the %s namespace %q: %w", n.At, n.Type, n.Path, err)
	}
	if ours {
		return fmt.Errorf("config.json: %s: it would change the host, whose %s namespace %q is (leave it out, or join another)", m.plan.Sysctls[i].At, n.Type, n.Path)
	}
	return nil
}

// looker gives no descriptors, only their number. What would be an error is a warning: the
// machine may be another than the one that the container is for.
type looker struct{ *maker }

func (m looker) namespace(*plan.Namespace) (int, error) { return 0, nil }

func (m looker) idmapped(*plan.Mount) (int, error) { return 0, nil }

func (m looker) node(*plan.Device) (int, error) {
	if !m.privileged() {
		return -1, unix.EPERM
	}
	return 0, nil
}

func (m looker) gate() (int, error) { return 0, nil }

func (m looker) failed(err error) error {
	if err != nil {
		m.runtime.warn("%v", err)
	}
	return nil
}

func (m looker) enterGroup() error {
	place := func(h *cgroup.Hierarchy) string { return path.Join(h.Mountpoint, m.Cgroup.Path) }
	f := &m.spawn.Facts
	f.CgroupDirs = cgroupDirs(m.host.Cgroups, place)
	for _, h := range m.host.Cgroups.Hierarchies() {
		if h.Version == 1 {
			f.Tasks = append(f.Tasks, place(h)+"/tasks")
		}
	}
	return nil
}
