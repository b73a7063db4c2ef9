package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/inside/view"
)

// surroundings are what a test finds, and has to leave as it was.
type surroundings struct {
	mounts []view.Mount
	fds    map[string]string
	// processes are all of the machine: the test's are among those that came later, and looking
	// into each one of the others costs more than the test where system calls are slow, as in a
	// guest.
	processes map[int]bool
	host      string
}

func (b *Box) look() surroundings {
	b.T.Helper()
	s := surroundings{mounts: b.mounts(), fds: openFDs(), processes: map[int]bool{}, host: hostFacts()}
	pids, err := allPIDs()
	b.must(err)
	for _, pid := range pids {
		s.processes[pid] = true
	}
	return s
}

func (b *Box) mounts() []view.Mount {
	b.T.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	b.must(err)
	return view.ParseMountinfo(string(text))
}

// end runs after everything that the test itself cleans up: it reports what is left, then removes
// it, so that one test's leak is not the next one's failure.
func (b *Box) end() {
	b.T.Helper()
	b.leakedProcesses()
	b.leakedMounts()
	b.leakedCgroups()
	b.leakedFiles()
	b.leakedFDs()
	if now := hostFacts(); now != b.before.host {
		b.T.Errorf("the host was changed\nbefore: %s\nafter:  %s", b.before.host, now)
	}
	// A bind mount of the host's that could not be removed must not be followed.
	if len(b.newMounts()) == 0 {
		b.must(os.RemoveAll(b.Dir))
	}
}

func (b *Box) newMounts() []view.Mount {
	var found []view.Mount
	for _, m := range b.mounts() {
		if !slices.ContainsFunc(b.before.mounts, func(old view.Mount) bool { return old.ID == m.ID && old.Target == m.Target }) {
			found = append(found, m)
		}
	}
	return found
}

func (b *Box) leakedMounts() {
	b.T.Helper()
	leaked := b.newMounts()
	for _, m := range slices.Backward(leaked) {
		b.T.Errorf("left behind: mount of %s (%s) on %s", m.Source, m.Type, m.Target)
		unix.Unmount(m.Target, unix.MNT_DETACH)
	}
	now := b.mounts()
	for _, old := range b.before.mounts {
		if slices.ContainsFunc(now, func(m view.Mount) bool { return old.ID == m.ID }) {
			continue
		}
		// Who removes a mount point takes what is mounted on it away from all mount namespaces,
		// this one's copies included.
		if _, err := os.Lstat(old.Target); !os.IsNotExist(err) {
			b.T.Errorf("taken away: mount of %s (%s) on %s", old.Source, old.Type, old.Target)
		}
	}
}

// RootMark is the file by which the engine knows a state root as its own.
const RootMark = "berth:root"

// leakedFiles looks where only the engine writes: its state root and its directory for temporary
// files. The root itself may stay.
func (b *Box) leakedFiles() {
	b.T.Helper()
	for _, dir := range []string{b.Root, b.temp} {
		entries, err := os.ReadDir(dir)
		if err != nil && !os.IsNotExist(err) {
			b.T.Error(err)
		}
		for _, e := range entries {
			if e.Name() == RootMark {
				continue // of the root itself
			}
			b.T.Errorf("left behind: %s", filepath.Join(dir, e.Name()))
		}
	}
}

// leakedFDs is about this test process: what was passed in messages, and the tests' own.
func (b *Box) leakedFDs() {
	b.T.Helper()
	for fd, target := range openFDs() {
		// Go's poller and its wake-up descriptor come to life at the first use.
		if b.before.fds[fd] == target || target == "anon_inode:[eventpoll]" || target == "anon_inode:[eventfd]" {
			continue
		}
		b.T.Errorf("left open: descriptor %s, %s", fd, target)
	}
}

func openFDs() map[string]string {
	fds := map[string]string{}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		// The descriptor of the directory that was read is gone again.
		if target, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			fds[e.Name()] = target
		}
	}
	return fds
}

// hostFacts are things of the host that a container's start could spoil: its name, and the device
// nodes that stand for a container's own.
func hostFacts() string {
	var b strings.Builder
	name, _ := os.Hostname()
	b.WriteString(name)
	for _, dev := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/fd"} {
		if info, err := os.Lstat(dev); err == nil {
			st := info.Sys().(*syscall.Stat_t)
			fmt.Fprintf(&b, " %s %s %d:%d", dev, info.Mode(), st.Uid, st.Gid)
		}
	}
	return b.String()
}
