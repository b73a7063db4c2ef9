package container

import (
	"errors"
	"fmt"
	"os"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/namespace"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// kinds are the types of namespaces by their files in /proc/PID/ns. The user
// namespace is the first: see joins.
var kinds = [...]struct {
	file string
	kind specs.LinuxNamespaceType
}{
	{"user", specs.UserNamespace}, {"mnt", specs.MountNamespace}, {"pid", specs.PIDNamespace}, {"net", specs.NetworkNamespace},
	{"ipc", specs.IPCNamespace}, {"uts", specs.UTSNamespace}, {"cgroup", specs.CgroupNamespace}, {"time", specs.TimeNamespace},
}

// namespaceIDs are the numbers of namespaces in nsfs, by kinds; 0 where the kernel has
// none of the kind.
type namespaceIDs [len(kinds)]uint64

// lookAtNamespaces tells which namespaces a process is in, or we where pid is 0.
func lookAtNamespaces(pid int) (ids namespaceIDs, err error) {
	for i, kind := range kinds {
		id, err := namespace.Of(pid, kind.file)
		if err != nil && !(errors.Is(err, unix.ENOENT) && kind.kind == specs.TimeNamespace) { // CONFIG_TIME_NS is off
			return ids, err
		}
		ids[i] = id.Ino
	}
	return ids, nil
}

// joins are the namespaces of a container, and its root, held by descriptors.
type joins struct {
	list []compile.Join
	fork bool
	user bool // a user namespace is among them
	root int
	fds  []int
}

func (j *joins) close() {
	for _, fd := range j.fds {
		unix.Close(fd)
	}
}

// namespacesOf opens the namespaces that the container was made with, where they
// differ from ours, at a process that is in them. They are compared by the very
// descriptors that are joined later: a process may go elsewhere at any moment, into a
// user namespace of its own making for one.
func (c *Container) namespacesOf(pid int) (_ *joins, err error) {
	j := &joins{root: -1}
	defer func() {
		if err != nil {
			j.close()
		}
	}()
	ours, err := lookAtNamespaces(0)
	if err != nil {
		return nil, err
	}
	want := c.Namespaces
	if want == (namespaceIDs{}) { // it is being made, and the process is our init
		if want, err = lookAtNamespaces(pid); err != nil {
			return nil, err
		}
	}
	mounts := false
	for i, kind := range kinds {
		if want[i] == ours[i] {
			continue
		}
		fd, err := c.theirs(pid, kind.file, want[i])
		if err != nil {
			return nil, err
		}
		j.fds = append(j.fds, fd)
		j.list = append(j.list, compile.Join{FD: fd, Flag: plan.CloneFlag(kind.kind), Text: "enter the container's " + string(kind.kind) + " namespace"})
		j.user = j.user || kind.kind == specs.UserNamespace
		j.fork = j.fork || kind.kind == specs.PIDNamespace || kind.kind == specs.TimeNamespace
		mounts = mounts || kind.kind == specs.MountNamespace
	}
	if j.user && os.Geteuid() == 0 {
		// As at the container's making: it may have no rights over others, we have.
		j.list = append(j.list[1:], j.list[0])
	}
	if !mounts {
		// By the record, and not the process's root: it may have moved that.
		root, err := unix.Open(c.Rootfs, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("open the container's root %s: %w", c.Rootfs, err)
		}
		j.root = root
		j.fds = append(j.fds, root)
	}
	return j, nil
}

// theirs opens a namespace at the process, or at another of the container
// where that one has left it.
func (c *Container) theirs(pid int, file string, id uint64) (int, error) {
	fd, err := theirsAt(pid, file, id)
	if err != nil || fd >= 0 {
		return fd, err
	}
	if g, err := c.OpenGroup(); err == nil && g != nil {
		pids, _ := g.AllProcs()
		for _, other := range pids {
			if fd, err := theirsAt(other, file, id); err == nil && fd >= 0 {
				return fd, nil
			}
		}
	}
	return -1, fmt.Errorf("container %s: process %d has left the %s namespace that the container was created with, and no other process is in it (exec never follows a process to another namespace)", c.ID, pid, file)
}

// theirsAt opens a process's namespace if it is the one that is meant, else it
// returns -1.
func theirsAt(pid int, file string, id uint64) (int, error) {
	fd, err := namespace.Open(pid, file)
	if err != nil {
		return -1, err
	}
	if its, err := namespace.OfFD(fd); err != nil || its.Ino != id {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// stayed makes sure that the first process is in the namespaces that the container was
// made with, for who has to look through its eyes.
func (c *Container) stayed() error {
	now, err := lookAtNamespaces(c.Pid)
	if err != nil || c.Namespaces == (namespaceIDs{}) {
		return err
	}
	for i, kind := range kinds {
		if now[i] != c.Namespaces[i] {
			return fmt.Errorf("container %s: its first process has left the %s namespace that the container was created with", c.ID, kind.file)
		}
	}
	return nil
}
