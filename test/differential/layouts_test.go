package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/inside/view"
)

// Ids of the ordinary user that the rootless layouts call the engines as, and the first of that
// user's subordinate ones.
const ordinary, firstSubordinate = 54321, 2000000

// A Layout is a kind of host, and a kind of caller.
type Layout struct {
	Name    string
	Cgroups string // native, v1 or v2: what the mount namespace shows of a hybrid host
	Systemd bool   // --systemd-cgroup
	User    string // root, userns or rootless
	Peers   []string
}

// layouts are those that this machine can show. A hybrid host can show each of its halves alone;
// crun refuses one as a whole.
func layouts(systemd bool) []Layout {
	kinds, unified := cgroupKinds()
	type host struct {
		name, cgroups string
		systemd       bool
		peers         []string
	}
	both := []string{"runc", "crun"}
	var hosts []host
	switch {
	case kinds > 0 && unified:
		hosts = []host{{"hybrid", "native", false, both[:1]}, {"v1", "v1", false, both}, {"v2", "v2", false, both}}
	case unified:
		hosts = []host{{"v2", "native", false, both}}
	default:
		hosts = []host{{"v1", "native", false, both}}
	}
	if systemd {
		hosts = append(hosts, host{hosts[0].name + "-systemd", "native", true, hosts[0].peers})
	}
	var all []Layout
	for _, h := range hosts {
		for _, user := range []string{"root", "userns", "rootless"} {
			if h.systemd && user == "rootless" {
				continue // the user's systemd is another test's
			}
			all = append(all, Layout{h.name + "/" + user, h.cgroups, h.systemd, user, h.peers})
		}
	}
	return all
}

func cgroupKinds() (v1 int, unified bool) {
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for _, m := range view.ParseMountinfo(string(text)) {
		switch m.Type {
		case "cgroup":
			v1++
		case "cgroup2":
			unified = true
		}
	}
	return v1, unified
}

// enter makes this process's mount namespace, which is its own, look like the layout.
func (l Layout) enter() error {
	for _, propagation := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", unix.MS_REC|propagation, ""); err != nil {
			return fmt.Errorf("change the propagation of /: %w", err)
		}
	}
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	mounts := view.ParseMountinfo(string(text))
	for _, m := range slices.Backward(mounts) {
		if l.Cgroups == "v1" && m.Type == "cgroup2" || l.Cgroups == "v2" && strings.HasPrefix(m.Target, "/sys/fs/cgroup") {
			if err := unix.Unmount(m.Target, unix.MNT_DETACH); err != nil {
				return fmt.Errorf("unmount %s: %w", m.Target, err)
			}
		}
	}
	if l.Cgroups != "v2" {
		return nil
	}
	if err := unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount cgroup2: %w", err)
	}
	return nil
}

// knowUser lets newuidmap know the ordinary user, in this mount namespace only.
func knowUser(dir string) error {
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return err
	}
	ids := fmt.Sprintf("berth-test:%d:%d\n", firstSubordinate, 65536)
	for file, text := range map[string]string{
		"passwd": string(passwd) + fmt.Sprintf("berth-test:x:%d:%d::/:/bin/sh\n", ordinary, ordinary), "subuid": ids, "subgid": ids,
	} {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(path, "/etc/"+file, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount on /etc/%s: %w", file, err)
		}
	}
	return nil
}

// chownAll gives directories to a user, and files that have one name only: the others are programs,
// which all bundles share.
func chownAll(dir string, id int) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		if e.IsDir() || st.Nlink == 1 {
			if err := os.Lchown(path, id, id); !errors.Is(err, unix.EROFS) {
				return err
			}
		}
		return nil
	})
}
