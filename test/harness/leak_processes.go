package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/proc/procs"
)

// leakedProcesses finds processes that belong to the test: by the mark in their environment, by
// their cgroup, and by being a child of this process, zombies included: an engine's helper that
// nobody waits for is one.
func (b *Box) leakedProcesses() {
	b.T.Helper()
	var left []int
	for _, pid := range b.newPIDs() {
		why := b.ours(pid)
		if why == "" {
			continue
		}
		b.T.Errorf("left behind: process %d %s (%s)", pid, commandLine(pid), why)
		b.thaw(pid)
		unix.Kill(pid, unix.SIGKILL)
		left = append(left, pid)
	}
	// The first of a PID namespace ends after all others have been waited for, and began before
	// them.
	for _, pid := range slices.Backward(left) {
		if _, err := reap(pid); err != nil && !errors.Is(err, unix.ECHILD) {
			b.T.Error(err)
		}
	}
}

// ours says why a process is the test's, or nothing.
func (b *Box) ours(pid int) string {
	if pid == os.Getpid() {
		return ""
	}
	proc := fmt.Sprintf("/proc/%d/", pid)
	if slices.Contains(environment(pid), mark+"="+b.Tag) {
		return "started by the engine"
	}
	if cgroups, _ := os.ReadFile(proc + "cgroup"); strings.Contains(string(cgroups), b.Tag) {
		return "in a cgroup of the test"
	}
	if parent, state := Parent(pid); parent == os.Getpid() {
		return "a child of the test in state " + state
	}
	return ""
}

// environment is what a process was started with. In the middle of an exec it reads as empty or cut
// off: the old memory goes while it is read, and the new one is not filled yet. So it is
// believed when two readings agree, and "nothing" only after a while.
func environment(pid int) []string {
	var last []byte
	for range 50 {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || hasNoMemory(pid) || len(data) > 0 && bytes.Equal(data, last) {
			return strings.Split(string(data), "\x00")
		}
		if last = data; len(data) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

// hasNoMemory is true of a zombie and of a kernel thread, which have no environment.
func hasNoMemory(pid int) bool {
	_, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return err != nil
}

// newPIDs are the processes that came after the test began.
func (b *Box) newPIDs() []int {
	b.T.Helper()
	pids, err := allPIDs()
	b.must(err)
	return slices.DeleteFunc(pids, func(pid int) bool { return b.before.processes[pid] })
}

func allPIDs() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// Parent gives a process's parent and the letter of its state, "" of one that is gone.
func Parent(pid int) (ppid int, state string) {
	s, err := procs.ReadStat(pid)
	if err != nil {
		return 0, ""
	}
	return s.Parent, string(s.State)
}

func commandLine(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if len(data) == 0 {
		data, _ = os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	}
	return strings.TrimSpace(strings.ReplaceAll(string(data), "\x00", " "))
}

// thaw lets a frozen process of a v1 cgroup come to its end: frozen there, even SIGKILL waits.
func (b *Box) thaw(pid int) {
	cgroups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	for _, line := range strings.Split(string(cgroups), "\n") {
		if parts := strings.SplitN(line, ":", 3); len(parts) == 3 && parts[1] == "freezer" && strings.Contains(parts[2], b.Tag) {
			for _, h := range Hierarchies(b.T) {
				os.WriteFile(filepath.Join(h.Dir, parts[2], "freezer.state"), []byte("THAWED"), 0)
			}
		}
	}
}
