package container

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/kernel"
	"github.com/berth-runtime/berth/internal/namespace"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// mapIDs writes the mappings of a user namespace that the child has made.
// Without the host's rights, more than one's own id is mapped by the setuid
// programs newuidmap and newgidmap, by what /etc/subuid grants.
func mapIDs(pid int, ids *plan.IDMaps, privileged bool) error {
	if privileged || mapsOnlySelf(ids) {
		if !privileged {
			if err := os.WriteFile(fmt.Sprintf("/proc/%d/setgroups", pid), []byte("deny"), 0); err != nil {
				return fmt.Errorf("deny setgroups in the user namespace: %w", err)
			}
		}
		if err := writeMap(pid, "uid_map", ids.UID); err != nil {
			return fmt.Errorf("config.json: /linux/uidMappings: %w", err)
		}
		if err := writeMap(pid, "gid_map", ids.GID); err != nil {
			return fmt.Errorf("config.json: /linux/gidMappings: %w", err)
		}
		return nil
	}
	if err := helperMap("newuidmap", pid, ids.UID); err != nil {
		return fmt.Errorf("config.json: /linux/uidMappings: %w", err)
	}
	if err := helperMap("newgidmap", pid, ids.GID); err != nil {
		return fmt.Errorf("config.json: /linux/gidMappings: %w", err)
	}
	return nil
}

// sameMappings refuses mappings that a joined user namespace does not have: they
// say what files and processes will be owned by, and that would not be true.
func (m *maker) sameMappings() error {
	n := m.plan.Namespace(specs.UserNamespace)
	if n == nil || n.Path == "" {
		return nil
	}
	for _, kind := range []struct {
		file, at string
		maps     []specs.LinuxIDMapping
	}{{"uid_map", "/linux/uidMappings", m.plan.IDs.UID}, {"gid_map", "/linux/gidMappings", m.plan.IDs.GID}} {
		if len(kind.maps) == 0 {
			continue
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", m.child.Pid, kind.file))
		if err != nil {
			return fmt.Errorf("read the mappings of the joined user namespace: %w", err)
		}
		have, want := strings.Fields(string(text)), strings.Fields(string(mapText(kind.maps)))
		if !slices.Equal(have, want) {
			return fmt.Errorf("config.json: %s: the user namespace %s has other mappings (%s); omit them, or use the same", kind.at, n.Path, strings.Join(have, " "))
		}
	}
	return nil
}

func mapText(maps []specs.LinuxIDMapping) []byte {
	var text []byte
	for _, m := range maps {
		text = fmt.Appendf(text, "%d %d %d\n", m.ContainerID, m.HostID, m.Size)
	}
	return text
}

func writeMap(pid int, file string, maps []specs.LinuxIDMapping) error {
	path, text := fmt.Sprintf("/proc/%d/%s", pid, file), mapText(maps)
	if err := os.WriteFile(path, text, 0); err != nil {
		hint := ""
		if len(text) >= os.Getpagesize() || len(maps) > 340 {
			hint = " (the kernel takes at most 340 mappings, and less than a page of text)"
		}
		return fmt.Errorf("map ids of the user namespace: %w%s", err, hint)
	}
	return nil
}

func helperMap(program string, pid int, maps []specs.LinuxIDMapping) error {
	args := []string{strconv.Itoa(pid)}
	for _, m := range maps {
		args = append(args, strconv.FormatUint(uint64(m.ContainerID), 10), strconv.FormatUint(uint64(m.HostID), 10), strconv.FormatUint(uint64(m.Size), 10))
	}
	out, err := exec.Command(program, args...).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s is not installed; it maps more than one's own id without root (Debian: apt install uidmap)", program)
	}
	if err != nil {
		return fmt.Errorf("%s: %s (%w); /etc/subuid and /etc/subgid say what you may map", program, bytes.TrimSpace(out), err)
	}
	return nil
}

// idmapped makes a detached copy of a bind mount's source whose owners are
// mapped, as in the user namespace that the container joins where nothing else is said.
// It takes rights over the file system, so it can't wait for the child.
func idmapped(m *plan.Mount, p *plan.Plan, joined int) (int, error) {
	where := "config.json: " + m.At + ": idmap of " + strconv.Quote(m.Source)
	uid, gid := m.IDMap.UID, m.IDMap.GID
	if len(uid) == 0 {
		uid, gid = p.IDs.UID, p.IDs.GID
	}
	userns := joined
	if len(uid) > 0 {
		made, err := namespace.NewUser(sysMap(uid), sysMap(gid))
		if err != nil {
			return -1, fmt.Errorf("%s: %w", where, err)
		}
		defer unix.Close(made)
		userns = made
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, m.Source, openTreeFlags(m))
	if err != nil {
		return -1, fmt.Errorf("%s: %w", where, err)
	}
	if p.Root.Propagation&unix.MS_SHARED == 0 {
		// A copy of a shared mount is its peer: what is mounted on it, in the container, is
		// mounted on the source as well. The Program's own copies are taken where all
		// mounts are slaves already.
		err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Propagation: unix.MS_SLAVE})
	}
	if err == nil {
		at := uint(unix.AT_EMPTY_PATH)
		if m.IDMap.Recursive {
			at |= unix.AT_RECURSIVE
		}
		err = unix.MountSetattr(tree, "", at, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(userns)})
	}
	if err != nil {
		unix.Close(tree)
		hint := ""
		switch err {
		case unix.EINVAL:
			hint = " (its file system does not support it on this kernel)"
		case unix.ENOSYS:
			err = kernel.IDMap.Missing(err)
		}
		return -1, fmt.Errorf("%s: %w%s", where, err, hint)
	}
	return tree, nil
}

func sysMap(maps []specs.LinuxIDMapping) []syscall.SysProcIDMap {
	list := make([]syscall.SysProcIDMap, len(maps))
	for i, m := range maps {
		list[i] = syscall.SysProcIDMap{ContainerID: int(m.ContainerID), HostID: int(m.HostID), Size: int(m.Size)}
	}
	return list
}
