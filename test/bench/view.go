package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"golang.org/x/sys/unix"
)

// view is a thread in a mount namespace of its own; what is started from it sees
// the cgroups that the namespace shows.
type view struct {
	name   string
	words  string // for the tables
	limits bool   // memory, cpu and pids can be limited
	calls  chan func()
}

// makeViews makes the views that this machine can give: "v1" and "v2" with one
// version alone, and "host" as it is where that is a mixture. In all of them the
// parent of the containers' cgroups is there, as it is on a host with containers.
func makeViews(parent string) (map[string]*view, error) {
	host, err := cgroup.Detect()
	if err != nil {
		return nil, err
	}
	const top = "/sys/fs/cgroup"
	views := map[string]*view{}
	add := func(name, words string, show func() error) error {
		v := &view{name: name, words: words, calls: make(chan func())}
		made := make(chan error)
		go v.serve(made, parent, show)
		if err := <-made; err != nil {
			return fmt.Errorf("show %s: %w", words, err)
		}
		views[name] = v
		return nil
	}
	nothing := func() error { return nil }
	fresh := func() error {
		// Nothing is to lie below it, as nothing does on a host that has no other version.
		if err := unix.Unmount(top, unix.MNT_DETACH); err != nil {
			return err
		}
		return unix.Mount("cgroup2", top, "cgroup2", 0, "")
	}
	switch host.Mode() {
	case cgroup.Unified:
		return views, add("v2", "v2", nothing)
	case cgroup.Legacy:
		return views, add("v1", "v1", nothing)
	case cgroup.None:
		return nil, errors.New("no cgroup file system is mounted")
	}
	if err := add("v1", "v1", func() error { return unix.Unmount(host.Unified().Mountpoint, unix.MNT_DETACH) }); err != nil {
		return nil, err
	}
	if err := add("v2", "v2", fresh); err != nil {
		return nil, err
	}
	return views, add("host", "hybrid", nothing)
}

// serve works in the view. Its thread is never given back to others.
func (v *view) serve(made chan<- error, parent string, show func() error) {
	runtime.LockOSThread()
	err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS)
	if err == nil {
		err = unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
	}
	if err == nil {
		err = show()
	}
	if err == nil {
		err = v.prepare(parent)
	}
	made <- err
	for call := range v.calls {
		call()
	}
}

// do runs a function in the view: what it starts, and the files that it opens,
// are those of the view.
func (v *view) do(f func()) {
	done := make(chan struct{})
	v.calls <- func() {
		defer close(done)
		f()
	}
	<-done
}

// mounted lists the cgroup mounts of the calling thread's mount namespace that
// are not hidden below another mount. (/proc/self is the main thread's.)
func mounted() (dirs []string, controllers string) {
	text, _ := os.ReadFile("/proc/thread-self/mountinfo")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.Contains(line, " - cgroup") {
			continue
		}
		own, err := os.ReadFile(filepath.Join(fields[4], "cgroup.controllers"))
		if _, hidden := os.Stat(filepath.Join(fields[4], "cgroup.procs")); hidden != nil {
			continue
		}
		if err != nil { // v1 has its controllers among the options
			own = []byte(strings.ReplaceAll(fields[len(fields)-1], ",", " "))
		}
		dirs = append(dirs, fields[4])
		controllers += " " + strings.TrimSpace(string(own)) + " "
	}
	return dirs, controllers
}

// prepare makes the parent cgroup and sees what can be limited here.
func (v *view) prepare(parent string) error {
	dirs, controllers := mounted()
	for _, dir := range dirs {
		if err := unix.Mkdir(filepath.Join(dir, parent), 0o755); err != nil && err != unix.EEXIST {
			return err
		}
		// A new group of v1 has no CPUs and no memory nodes.
		for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
			if above, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				if err := os.WriteFile(filepath.Join(dir, parent, name), above, 0); err != nil {
					return err
				}
			}
		}
	}
	v.limits = true
	for _, name := range []string{" memory ", " cpu ", " pids "} {
		v.limits = v.limits && strings.Contains(controllers, name)
	}
	return nil
}

// removeGroups removes a cgroup with all that is below it, in all hierarchies.
func removeGroups(name string) {
	dirs, _ := mounted()
	for _, dir := range dirs {
		top := filepath.Join(dir, name)
		for depth := 3; depth >= 0; depth-- {
			below, _ := filepath.Glob(top + strings.Repeat("/*", depth))
			for _, dir := range below {
				_ = unix.Rmdir(dir)
			}
		}
	}
}
