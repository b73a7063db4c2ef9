package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process that one hierarchy refuses is in none of the group's directories then,
// but where it was before in each.
func TestRefusedJoinIsTakenBack(t *testing.T) {
	host := hostForTest(t)
	if h := need(t, host, "cpuset"); h.Version == 2 {
		t.Skip("version 2 is joined in one step, and its cpusets refuse nobody")
	}
	home, g := makeGroup(t, host), makeGroup(t, host)
	pid := start(t, home, "sleep").Process.Pid
	before, err := host.memberships(pid)
	if err != nil {
		t.Fatal(err)
	}
	if h := host.Hierarchies(); h[0].Has("cpuset") {
		t.Skip("cpuset is the first hierarchy here, so that nothing is to be moved back")
	}
	// A version 1 cpuset without processors can be entered by nobody.
	if err := os.WriteFile(g.Directory("cpuset")+"/cpuset.cpus", []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := g.Join(pid); !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "undone") {
		t.Errorf("join: %v", err)
	}
	after, err := host.memberships(pid)
	if err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("it was in %v, and is in %v, %v", before, after, err)
	}
	if pids, err := g.AllProcs(); len(pids) > 0 || err != nil {
		t.Errorf("the group has %v, %v", pids, err)
	}
}

// A process that the second of two groups refuses is not in the first then either.
func TestRefusedJoinOfSeveralIsTakenBack(t *testing.T) {
	host := hostForTest(t)
	cpuset := need(t, host, "cpuset")
	home, first, second := makeGroup(t, host), makeGroup(t, host), makeGroup(t, host)
	pid := start(t, home, "sleep").Process.Pid
	before, err := host.memberships(pid)
	if err != nil {
		t.Fatal(err)
	}
	// A version 1 cpuset without processors can be entered by nobody, nor a version 2
	// cgroup that gives its children a controller that knows no threads.
	file, value, want := "/cpuset.cpus", "\n", syscall.ENOSPC
	if cpuset.Version == 2 {
		file, value, want = "/cgroup.subtree_control", "+memory", syscall.EBUSY
	}
	if err := os.WriteFile(second.Directory("cpuset")+file, []byte(value), 0); err != nil {
		t.Fatal(err)
	}
	if err := Join(pid, first, second); !errors.Is(err, want) || strings.Contains(err.Error(), "undone") {
		t.Errorf("join: %v", err)
	}
	if after, err := host.memberships(pid); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("it was in %v, and is in %v, %v", before, after, err)
	}
	if err := Join(pid, second, first); !errors.Is(err, want) {
		t.Errorf("join, the other way round: %v", err)
	}
	if after, err := host.memberships(pid); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("it was in %v, and is in %v, %v", before, after, err)
	}
	if err := Join(pid, home, first); err != nil {
		t.Error(err)
	}
	if pids, err := first.Procs(); err != nil || !slices.Equal(pids, []int{pid}) {
		t.Errorf("the last group has %v, %v; want %d", pids, err, pid)
	}
}

// A shell of a single thread enters the version 1 groups by writing "0" to
// the opened tasks files, and version 2 by the clone.
func TestJoinWithoutGracePeriod(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	files, err := g.joinFiles()
	if err != nil {
		t.Fatal(err)
	}
	script := ""
	for i := range files {
		script += "echo 0 >&" + strconv.Itoa(3+i) + "; "
		if i == 6 {
			break // sh knows descriptors of one digit only
		}
	}
	cmd := exec.Command("/bin/sh", "-c", script+"cat /proc/self/cgroup")
	cmd.ExtraFiles = files[:min(len(files), 7)]
	fd, err := g.CloneFD()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: fd >= 0, CgroupFD: fd}
	out, err := cmd.Output()
	for _, f := range files {
		f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	in := strings.Count(string(out), ":"+g.Path()+"\n")
	want := len(cmd.ExtraFiles)
	if fd >= 0 {
		want++
	}
	if in != want {
		t.Errorf("it entered %d of %d:\n%s", in, want, out)
	}
}

// A process may enter a group that version 2 froze, if that is wanted, and
// begins when it is thawed.
func TestIntoFrozen(t *testing.T) {
	host := hostForTest(t)
	if host.Unified() == nil {
		t.Skip("no version 2 here")
	}
	g := makeGroup(t, host, Only("unified"), Enable(), IntoFrozen())
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	fd, err := g.CloneFD()
	if err != nil {
		t.Fatal(err)
	}
	inside, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	dir := os.NewFile(uintptr(inside), "the group")
	defer dir.Close()
	// The start of a process waits for its exec, which waits for the thaw. All of Go
	// waits with it where there is one processor, or where the garbage collector wants
	// to stop the world meanwhile; so it is not this process that starts it.
	cmd := roleCommand("enter")
	cmd.ExtraFiles = []*os.File{dir}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(60 * time.Second)
	for {
		pids, err := g.Procs()
		if err != nil {
			t.Fatal(err)
		}
		if len(pids) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it does not enter")
		}
		time.Sleep(time.Millisecond)
	}
	if err := g.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || out.String() != "ran\n" {
		t.Errorf("it said %q, %v", out.String(), err)
	}
}
