package containerd

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// checkLeaks looks for what containers may leave behind, once there should be
// none.
func (d *Daemon) checkLeaks() {
	end := time.Now().Add(time.Minute)
	for len(d.Shims()) > 0 && time.Now().Before(end) {
		time.Sleep(5 * time.Millisecond) // they leave after containerd has its answer
	}
	for _, pid := range d.Shims() {
		d.T.Errorf("left: shim with pid %d", pid)
	}
	for _, s := range d.Sockets() {
		d.T.Errorf("left: socket %s", s)
	}
	d.checkCgroups()
	d.checkMounts()
	states, _ := filepath.Glob(filepath.Join(d.Dir, "engine", "*", "*"))
	for _, s := range states {
		if filepath.Base(s) == "berth:root" { // the directory's own mark
			continue
		}
		d.T.Errorf("left: state of the engine %s", s)
	}
	if d.T.Failed() {
		d.T.Logf("containerd's log:\n%s", tail(d.Log(), 12))
	}
}

func (d *Daemon) checkMounts() {
	for _, point := range d.Mounts() {
		d.T.Errorf("left: mount on %s", point)
	}
}

// Sockets are those of shims.
func (d *Daemon) Sockets() []string {
	sockets, _ := filepath.Glob(filepath.Join(d.Dir, "s", "*"))
	return sockets
}

// RemoveDeadSockets removes sockets that nobody serves.
func (d *Daemon) RemoveDeadSockets() {
	for _, s := range d.Sockets() {
		conn, err := net.Dial("unix", s)
		switch {
		case err == nil:
			conn.Close()
		case errors.Is(err, syscall.ECONNREFUSED):
			os.Remove(s)
		}
	}
}

// Mounts are the mount points in the daemon's directory.
func (d *Daemon) Mounts() (points []string) {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], d.Dir+"/") {
			points = append(points, f[4])
		}
	}
	return points
}

// Cgroups are the cgroups of containers, of all hierarchies, without the one
// that has them all.
func (d *Daemon) Cgroups() (groups []string) {
	for _, top := range d.tops() {
		filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
			if err == nil && entry.IsDir() && path != top {
				groups = append(groups, path)
			}
			return nil
		})
	}
	return groups
}

// tops are the cgroups that have them all, in each hierarchy.
func (d *Daemon) tops() (groups []string) {
	for _, pattern := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/*"} {
		found, _ := filepath.Glob(pattern + d.Cgroup)
		groups = append(groups, found...)
	}
	return groups
}

func (d *Daemon) checkCgroups() {
	groups := d.Cgroups()
	for i := len(groups) - 1; i >= 0; i-- {
		d.T.Errorf("left: cgroup %s", groups[i])
	}
}
