package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestCreateMakesEveryDirectoryAndDestroyRemovesThem(t *testing.T) {
	host := hostForTest(t)
	top := testPath()
	g, err := host.Create(top + "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	made := g.Made()
	if want := 3 * len(host.Hierarchies()); len(made) != want {
		t.Errorf("%d directories made, want %d: %q", len(made), want, made)
	}
	for _, dir := range made {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if err := g.Destroy(); err != nil {
		t.Fatal(err)
	}
	for _, dir := range made {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", dir, err)
		}
	}
	if err := g.Destroy(); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

func TestCreateAdoptsWhatIsThere(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	again, err := host.Create(g.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if len(again.Made()) != 0 {
		t.Errorf("made %q", again.Made())
	}
	if err := again.Destroy(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(g.Made()[0]); err != nil {
		t.Errorf("a group that was adopted was removed: %v", err)
	}
	// What it writes into it, it does only with the record of the maker.
	if err := again.Freeze(); host.privileged() && (!errors.Is(err, ErrNotOwner) || !errors.Is(err, fs.ErrPermission)) {
		t.Errorf("freeze of somebody else's group: %v", err)
	}
	again.Thaw()
	mine, err := host.Open(g.Path(), Made(g.Made()))
	if err != nil {
		t.Fatal(err)
	}
	defer mine.Close()
	if !slices.Equal(mine.Made(), g.Made()) {
		t.Errorf("record says %q, want %q", mine.Made(), g.Made())
	}
	if err := mine.Freeze(); err != nil {
		t.Error(err)
	}
	if err := mine.Thaw(); err != nil {
		t.Error(err)
	}
}

func TestOpenWhatIsNotThere(t *testing.T) {
	host := hostForTest(t)
	if _, err := host.Open(testPath()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestOnly(t *testing.T) {
	host := hostForTest(t)
	h := host.Hierarchies()[0]
	name := h.String()
	if len(h.Controllers) > 0 {
		name = h.Controllers[0]
	}
	g := makeGroup(t, host, Only(name))
	if len(g.Made()) != 1 || g.Directory(name) != g.Made()[0] {
		t.Errorf("made %q, directory %q", g.Made(), g.Directory(name))
	}
	if _, err := host.Create(testPath(), Only("nonsense")); !errors.Is(err, ErrNoController) {
		t.Errorf("a controller that nobody has: %v", err)
	}
}

func TestJoinAndKill(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	cmd := start(t, g, "sleep")
	pids, err := g.Procs()
	if err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
		t.Fatalf("processes %v, %v; want %d", pids, err, cmd.Process.Pid)
	}
	list, err := host.memberships(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if m.path != g.Path() {
			t.Errorf("the process is in %s in %v", m.path, m)
		}
	}
	if on, err := g.Populated(); !on || err != nil {
		t.Errorf("populated %v, %v", on, err)
	}
	same, err := host.OfProcess(cmd.Process.Pid)
	if err != nil || same.Path() != g.Path() {
		t.Fatalf("the group of the process is %v, %v", same, err)
	}
	same.Close()
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := g.WaitEmpty(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
	if on, err := g.Populated(); on || err != nil {
		t.Errorf("populated %v, %v", on, err)
	}
}

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
	if err := g.Join(pid); !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), "taken back") {
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
	if err := Join(pid, first, second); !errors.Is(err, want) || strings.Contains(err.Error(), "taken back") {
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

func TestFreezeAndThaw(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	cmd := start(t, g, "count")
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	if on, err := g.Frozen(); !on || err != nil {
		t.Fatalf("frozen %v, %v", on, err)
	}
	if err := g.Join(os.Getpid()); !errors.Is(err, ErrFrozen) {
		t.Fatalf("a process may join a frozen group: %v", err)
	}
	if _, err := g.CloneFD(); !errors.Is(err, ErrFrozen) {
		t.Fatalf("a process may be cloned into a frozen group: %v", err)
	}
	before := cpuTime(t, cmd.Process.Pid)
	busyFor(30 * time.Millisecond)
	if after := cpuTime(t, cmd.Process.Pid); after != before {
		t.Errorf("it ran while it was frozen: %d, then %d ticks", before, after)
	}
	if err := g.Thaw(); err != nil {
		t.Fatal(err)
	}
	if on, err := g.Frozen(); on || err != nil {
		t.Fatalf("frozen %v, %v", on, err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for cpuTime(t, cmd.Process.Pid) == before {
		if time.Now().After(deadline) {
			t.Fatal("it does not run again")
		}
		busyFor(time.Millisecond)
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

// Both freezers, where both are there, and what was frozen dies by Kill.
func TestKillFrozen(t *testing.T) {
	host := hostForTest(t)
	for _, only := range [][]string{{"freezer"}, {"unified"}, nil} {
		t.Run(strings.Join(only, ""), func(t *testing.T) {
			if only != nil && !(only[0] == "unified" && host.Unified() != nil || host.Controller(only[0]) != nil) {
				t.Skipf("no %s here", only[0])
			}
			var opts []Option
			if only != nil {
				opts = append(opts, Only(only...))
			}
			g := makeGroup(t, host, opts...)
			cmd := start(t, g, "sleep")
			if err := g.Freeze(); err != nil {
				t.Fatal(err)
			}
			if err := g.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := g.WaitEmpty(); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
		})
	}
}

// Processes that another tool put into version 1 alone are found.
func TestHybridWithProcessesOnVersion1Only(t *testing.T) {
	host := hostForTest(t)
	if host.Unified() == nil || host.Controller("freezer") == nil || host.Controller("freezer").Version != 1 {
		t.Skip("this host has not both freezers")
	}
	g := makeGroup(t, host)
	v1, err := host.Open(g.Path(), Only("freezer"), Made(g.Made()))
	if err != nil {
		t.Fatal(err)
	}
	defer v1.Close()
	cmd := start(t, v1, "sleep")
	if pids, err := g.Procs(); err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
		t.Errorf("processes %v, %v", pids, err)
	}
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	if state, err := v1.Frozen(); err != nil || !state {
		t.Errorf("frozen %v, %v", state, err)
	}
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
}

func TestKillStormOfForks(t *testing.T) {
	host := hostForTest(t)
	for _, only := range []string{"unified", "freezer", "pids"} {
		t.Run(only, func(t *testing.T) {
			if host.Controller(only) == nil && (only != "unified" || host.Unified() == nil) {
				t.Skipf("no %s here", only)
			}
			g := makeGroup(t, host, Only(only))
			cmd := start(t, g, "forks")
			deadline := time.Now().Add(20 * time.Second)
			for {
				pids, err := g.Procs()
				if err != nil {
					t.Fatal(err)
				}
				if len(pids) >= 3 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("it does not fork")
				}
			}
			if err := g.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := g.WaitEmpty(); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
		})
	}
}

func TestSignal(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	cmd := start(t, g, "sleep")
	if err := g.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("it ended with %v", cmd.ProcessState)
	}
}

func TestDestroyNested(t *testing.T) {
	host := hostForTest(t)
	g, err := host.Create(testPath())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, g) })
	for _, dir := range g.Made() {
		for _, child := range []string{"a", "b/c/d", "b/e"} {
			if err := os.MkdirAll(filepath.Join(dir, child), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	below, err := host.Create(g.Path() + "/b/c/d")
	if err != nil {
		t.Fatal(err)
	}
	defer below.Close()
	cmd := start(t, below, "sleep")
	if pids, err := g.AllProcs(); err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
		t.Errorf("processes %v, %v", pids, err)
	}
	host.Timeout = time.Millisecond
	err = g.Destroy()
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), strconv.Itoa(cmd.Process.Pid)) {
		t.Fatalf("destroy with a process in it: %v", err)
	}
	host.Timeout = 10 * time.Second
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	// No wait in between: Destroy waits for the dying.
	if err := g.Destroy(); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAndChildren(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "pids")
	g := makeGroup(t, host)
	for _, name := range []string{"b", "a"} {
		child, err := host.Create(g.Path() + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		child.Close()
	}
	if names, err := g.Children(); err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("children %q, %v", names, err)
	}
	if err := g.WriteFile("pids.max", "17"); err != nil {
		t.Fatal(err)
	}
	if got, err := g.ReadFile("pids.max"); got != "17" || err != nil {
		t.Errorf("pids.max is %q, %v", got, err)
	}
	if names, err := g.Files("pids"); err != nil || !slices.Contains(names, "pids.max") || slices.Contains(names, "a") {
		t.Errorf("files %q, %v", names, err)
	}
	if _, err := g.ReadFile("cgroup.procs"); err != nil {
		t.Error(err)
	}
	if h := host.Controller("pids"); h.Version == 1 {
		if err := g.WriteFile("notify_on_release", "0"); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "..", "../pids.max", "a/pids.max", "nonsense.max"} {
		if _, err := g.ReadFile(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
		if err := g.WriteFile(bad, "1"); err == nil {
			t.Errorf("%q was written", bad)
		}
	}
	if err := g.WriteFile("pids.max", "many"); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a wrong value: %v", err)
	}
	other, err := host.Open(g.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.WriteFile("pids.max", "3"); host.privileged() && !errors.Is(err, ErrNotOwner) {
		t.Errorf("somebody else's file: %v", err)
	}
}

func TestPurge(t *testing.T) {
	host := hostForTest(t)
	g, err := host.Create(testPath())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, g) })
	below, err := host.Create(g.Path() + "/below")
	if err != nil {
		t.Fatal(err)
	}
	start(t, below, "sleep")
	below.Close()
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	again, err := host.Open(g.Path(), Made(g.Made()))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Purge(); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Open(g.Path(), Made(g.Made())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Purge: %v", err)
	}
}

func TestCreateUndoesItself(t *testing.T) {
	host := hostForTest(t)
	path := testPath()
	// A name that version 1 takes on no hierarchy: a kernel file's.
	if _, err := host.Create(path + "/cgroup.procs/x"); err == nil {
		t.Fatal("a group below a file was made")
	}
	if left := leftGroups(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

func TestCpusetInherits(t *testing.T) {
	host := hostForTest(t)
	h := need(t, host, "cpuset")
	if h.Version != 1 {
		t.Skip("version 2 cpusets need no values")
	}
	g, err := host.Create(testPath() + "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, g) })
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		want, err := os.ReadFile(h.Mountpoint + "/" + file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(g.Directory("cpuset") + "/" + file)
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is %q, %v; want %q", file, got, err, want)
		}
	}
}

func cpuTime(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return user + system
}

// busyFor lets the clock go on; it is for looking whether something happens meanwhile.
func busyFor(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

func BenchmarkCreateDestroy(b *testing.B) {
	host := hostForTest(b)
	parent, err := host.Create(testPath())
	if err != nil {
		b.Fatal(err)
	}
	defer parent.Destroy()
	for b.Loop() {
		g, err := host.Create(parent.Path() + "/x")
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Destroy(); err != nil {
			b.Fatal(err)
		}
	}
}
