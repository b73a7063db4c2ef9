package container

import (
	"fmt"
	"os"
	"strconv"

	"github.com/berth-runtime/berth/compile"
	"github.com/berth-runtime/berth/plan"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// joins are the namespaces of a process, held by its pidfd.
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

// namespacesOf opens what it takes to be where a process of the container is:
// one pidfd for all namespaces that differ from ours (setns(2), 5.8), and its
// root where that is not the root of its mount namespace.
func (c *Container) namespacesOf(pid int) (*joins, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("open the container's process %d: %w", pid, err)
	}
	j := &joins{root: -1, fds: []int{fd}}
	var flags uintptr
	for _, kind := range [...]struct {
		file string
		kind specs.LinuxNamespaceType
	}{
		{"user", specs.UserNamespace}, {"mnt", specs.MountNamespace}, {"pid", specs.PIDNamespace}, {"net", specs.NetworkNamespace},
		{"ipc", specs.IPCNamespace}, {"uts", specs.UTSNamespace}, {"cgroup", specs.CgroupNamespace}, {"time", specs.TimeNamespace},
	} {
		theirs, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/" + kind.file)
		if err != nil {
			if os.IsNotExist(err) && kind.kind == specs.TimeNamespace {
				continue // CONFIG_TIME_NS is off
			}
			j.close()
			return nil, fmt.Errorf("look at the container's namespaces: %w", err)
		}
		ours, err := os.Readlink("/proc/self/ns/" + kind.file)
		if err == nil && ours == theirs {
			continue
		}
		flags |= plan.CloneFlag(kind.kind)
	}
	if flags != 0 {
		j.list = []compile.Join{{FD: fd, Flag: flags, Text: "enter the container's namespaces"}}
	}
	j.user = flags&unix.CLONE_NEWUSER != 0
	j.fork = flags&(unix.CLONE_NEWPID|unix.CLONE_NEWTIME) != 0
	if c.NoPivot || flags&unix.CLONE_NEWNS == 0 {
		root, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			j.close()
			return nil, fmt.Errorf("open the container's root: %w", err)
		}
		j.root = root
		j.fds = append(j.fds, root)
	}
	return j, nil
}
