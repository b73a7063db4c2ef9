package neighbour

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/inside/view"
)

// namespaceFiles are the kinds of namespaces by their names in /proc/PID/ns.
var namespaceFiles = strings.Fields("user mnt pid net uts ipc cgroup time")

// namespacesOf reads which namespaces a process is in.
func namespacesOf(pid int) map[string]string {
	found := map[string]string{}
	for _, name := range namespaceFiles {
		found[name], _ = os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, name))
	}
	return found
}

// examine looks at a process of the container from the host, and tells by what it is more than it
// may be. Once it has begun to run, its descriptors are its own.
func (t *trial) examine(pid int, r rights, executed bool) (more []string) {
	dir := fmt.Sprintf("/proc/%d/", pid)
	status := statusOf(string(read(dir + "status")))
	more = append(r.exceeded(status), r.others(status)...)
	now, host := namespacesOf(pid), namespacesOf(os.Getpid())
	for _, name := range r.namespaces {
		if now[name] == host[name] {
			more = append(more, "the host's namespace "+name)
		}
	}
	if t.born != nil {
		for _, name := range namespaceFiles {
			if now[name] != t.born[name] {
				more = append(more, fmt.Sprintf("namespace %s, and the container was made with %s", now[name], t.born[name]))
			}
		}
	}
	more = append(more, t.cgroups(dir)...)
	if executed {
		more = append(more, t.descriptors(dir)...)
	}
	mounts := view.ParseMountinfo(string(read(dir + "mountinfo")))
	more = append(more, t.covered(mounts)...)
	more = append(more, t.foreign(mounts)...)
	if !sameFile(dir+"root", t.s.target.Rootfs()) {
		more = append(more, "another root directory")
	}
	if namespacesOf(pid)["mnt"] == "" {
		return nil // it is on its way out, and has let go of what it was in while it was looked at
	}
	return more
}

func statusOf(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			m[key] = strings.Join(strings.Fields(value), " ")
		}
	}
	return m
}

// cgroups are all the container's own or below.
func (t *trial) cgroups(dir string) (more []string) {
	own := t.spec.Linux.CgroupsPath
	if own == "" {
		return nil // it is left where its caller is
	}
	for line := range strings.Lines(string(read(dir + "cgroup"))) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || !slices.Contains(t.s.canary.controllers, parts[1]) {
			continue // tests of others mount hierarchies meanwhile
		}
		if parts[2] != own && !strings.HasPrefix(parts[2], own+"/") {
			more = append(more, "cgroup "+strings.TrimSpace(line))
		}
	}
	return more
}

// descriptors are the standard streams alone, none of which leads to a directory.
func (t *trial) descriptors(dir string) (more []string) {
	entries, _ := os.ReadDir(dir + "fd")
	for _, e := range entries {
		n, _ := strconv.Atoi(e.Name())
		target, err := os.Readlink(dir + "fd/" + e.Name())
		if err != nil {
			continue
		}
		if info, err := os.Stat(dir + "fd/" + e.Name()); n > 2 || err == nil && info.IsDir() {
			more = append(more, fmt.Sprintf("descriptor %d, %s", n, target))
		}
	}
	return more
}

// covered sees to it that, wherever a procfs or sysfs was mounted in the container, what of it is
// to be masked is, and what of it is to be read-only is. By whatever names it can be reached later,
// it is the same mount.
func (t *trial) covered(mounts []view.Mount) (more []string) {
	kinds := map[string]string{"proc": "/proc", "sysfs": "/sys"}
	for _, m := range mounts {
		top := kinds[m.Type]
		if top == "" || m.Root != "/" || on(mounts, m.Target).ID != m.ID {
			continue
		}
		for _, path := range t.spec.Linux.MaskedPaths {
			if below, ok := strings.CutPrefix(path, top+"/"); ok && exists(path) {
				if c := on(mounts, m.Target+"/"+below); c.Root != "/null" && !(c.Type == "tmpfs" && slices.Contains(c.Options, "ro")) {
					more = append(more, path+" is not masked")
				}
			}
		}
		for _, path := range t.spec.Linux.ReadonlyPaths {
			if below, ok := strings.CutPrefix(path, top+"/"); ok && exists(path) {
				if c := on(mounts, m.Target+"/"+below); !slices.Contains(c.Options, "ro") && !slices.Contains(m.Options, "ro") {
					more = append(more, path+" is not read-only")
				}
			}
		}
	}
	return more
}

// foreign are mounts of what lies on the host's disk, but for the root and the volume.
func (t *trial) foreign(mounts []view.Mount) (more []string) {
	made := strings.Fields("proc sysfs tmpfs devpts mqueue devtmpfs cgroup cgroup2")
	for _, m := range mounts {
		own := strings.Contains(m.Root, filepath.Base(t.s.b.Dir)) && !strings.Contains(m.Root, filepath.Base(t.s.canary.outside))
		if !slices.Contains(made, m.Type) && !own {
			more = append(more, fmt.Sprintf("mount of %s %s on %s", m.Type, m.Root, m.Target))
		}
	}
	return more
}

// on is the topmost mount on a path.
func on(mounts []view.Mount, path string) (found view.Mount) {
	for _, m := range mounts {
		if m.Target == path {
			found = m
		}
	}
	return found
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func sameFile(a, b string) bool {
	var x, y syscall.Stat_t
	return syscall.Stat(a, &x) == nil && syscall.Stat(b, &y) == nil && x.Ino == y.Ino && x.Dev == y.Dev
}

// disk has the payload open a disk of the host by a node that the image has.
func (t *trial) disk(a *agent, s *specs.Spec) []string {
	if t.shape.rootless {
		return nil // there is no device filter; who owns and may use the node decides, as on the host
	}
	got, err := a.do("open-device=/disk")
	if err == nil && (got.Errno == "" || got.Errno == "ENXIO" || got.Errno == "ENOMEDIUM" || got.Errno == "ENODEV") {
		return []string{"device 7:0 can be opened"}
	}
	return nil
}
