package neighbour

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/test/harness"
)

// canary is what nobody may change: a directory of the host's, a container with its cgroups and its
// state, the host's mounts and parameters.
type canary struct {
	b       *harness.Box
	outside string
	c       *harness.Container
	groups  []string
	kept    map[string]string
	// controllers are those of the hierarchies that its process is in a cgroup of its own in.
	controllers []string
}

// newCanary makes it. Its directory has what the names of the root could be mistaken for.
func newCanary(b *harness.Box) *canary {
	t := b.T
	t.Helper()
	k := &canary{b: b, outside: b.Path("outside"), c: b.Container("/inside", "hang")}
	for _, dir := range []string{"proc/sys/kernel", "sys/firmware", "dev/pts", "dev/shm", "dev/mqueue", "etc/fixed", "home/user", "srv/a", "var/cache", "opt/nodes", "data"} {
		check(t, os.MkdirAll(filepath.Join(k.outside, dir), 0o755))
	}
	for _, file := range []string{"proc/sys/kernel/domainname", "etc/passwd", "etc/secret", "etc/fixed/file", "inside", "data/file"} {
		check(t, os.WriteFile(filepath.Join(k.outside, file), []byte("the host's"), 0o600))
	}
	k.c.RunDetached()
	for _, h := range harness.Hierarchies(t) {
		dir := filepath.Join(h.Dir, k.c.Spec.Linux.CgroupsPath)
		if _, err := os.Stat(dir); err == nil {
			k.groups = append(k.groups, dir)
		}
	}
	for line := range strings.Lines(string(read(fmt.Sprintf("/proc/%d/cgroup", k.c.PID)))) {
		if parts := strings.SplitN(line, ":", 3); len(parts) == 3 && strings.Contains(parts[2], k.c.ID) {
			k.controllers = append(k.controllers, parts[1])
		}
	}
	return k
}

// parameters are files of the host's that a way out would lead to.
var parameters = strings.Fields("kernel/core_pattern kernel/domainname kernel/hostname kernel/modprobe vm/overcommit_memory net/ipv4/ip_forward")

// limits are files of a cgroup that tell what was set.
var limits = strings.Fields("cgroup.procs tasks pids.max memory.max memory.limit_in_bytes cpu.shares cpu.weight freezer.state cgroup.freeze devices.list")

func (k *canary) look() map[string]string {
	seen := map[string]string{}
	for _, root := range []string{k.outside, filepath.Join(k.b.Root, k.c.ID)} {
		_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				seen[path] = err.Error()
				return nil
			}
			info, err := e.Info()
			if err != nil {
				seen[path] = err.Error()
				return nil
			}
			st := info.Sys().(*syscall.Stat_t)
			seen[path] = fmt.Sprint(info.Mode(), st.Uid, st.Gid, st.Ino, st.Mtim, st.Rdev, contentOf(path, info))
			return nil
		})
	}
	for _, dir := range k.groups {
		for _, file := range limits {
			if text, err := os.ReadFile(filepath.Join(dir, file)); err == nil {
				seen[filepath.Join(dir, file)] = string(text)
			}
		}
	}
	for _, file := range parameters {
		text, _ := os.ReadFile("/proc/sys/" + file)
		seen["/proc/sys/"+file] = string(text)
	}
	root, _ := os.Stat(k.b.Root)
	seen[k.b.Root] = fmt.Sprint(root.Mode())
	for _, file := range []string{"comm", "oom_score_adj"} {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", k.c.PID, file))
		seen["its process's "+file] = string(text)
	}
	for line := range strings.Lines(string(read("/proc/self/mountinfo"))) {
		if strings.Contains(line, " /proc/sys/fs/nr_open ") {
			continue // the harness's own, while criu runs
		}
		seen["mount "+strings.TrimSpace(line)] = "is there"
	}
	return seen
}

// limit changes a limit of its.
func (k *canary) limit() error {
	for _, dir := range k.groups {
		if file := filepath.Join(dir, "pids.max"); exists(file) {
			return os.WriteFile(file, []byte("77"), 0)
		}
	}
	return os.ErrNotExist
}

func contentOf(path string, info fs.FileInfo) string {
	switch {
	case info.Mode().IsRegular():
		return string(read(path))
	case info.Mode()&os.ModeSymlink != 0:
		target, _ := os.Readlink(path)
		return target
	}
	return ""
}

// changes compares it with what it was.
func (k *canary) changes() (changed []string) {
	now := k.look()
	for name, was := range k.kept {
		if is, there := now[name]; !there {
			changed = append(changed, name+" is gone")
		} else if is != was {
			changed = append(changed, fmt.Sprintf("%s was %q, is %q", name, was, is))
		}
	}
	for name := range now {
		if _, there := k.kept[name]; !there {
			changed = append(changed, name+" is new")
		}
	}
	slices.Sort(changed)
	if len(changed) > 0 {
		k.kept = now // it is told once
	}
	return changed
}

func read(path string) []byte {
	data, _ := os.ReadFile(path)
	return data
}
