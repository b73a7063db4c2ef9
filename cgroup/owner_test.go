package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func needUnified(t testing.TB, host *Host) *Hierarchy {
	t.Helper()
	u := host.Unified()
	if u == nil {
		t.Skip("no version 2 here")
	}
	return u
}

func needRoot(t testing.TB, host *Host) {
	t.Helper()
	if !host.privileged() {
		t.Skip("it takes root")
	}
}

// markDelegated does what systemd does for Delegate=yes.
func markDelegated(t testing.TB, g *Group) {
	t.Helper()
	if err := unix.Setxattr(g.Directory("unified"), "user.delegate", []byte("1"), 0); err != nil {
		t.Skipf("no extended attributes on cgroups here: %v", err)
	}
}

func TestUnitsOfSystemdAreLeftAlone(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	needUnified(t, host)
	top := testPath() + ".slice"
	service := makeGroupAt(t, host, top+"/web.service")
	path := service.Path() + "/payload"

	_, err := host.Create(path)
	var refused *NotOwnerError
	if !errors.As(err, &refused) || refused.Owner.Unit != "web.service" || !errors.Is(err, ErrNotOwner) || !Denied(err) {
		t.Fatalf("a group inside of a service: %v", err)
	}
	if !strings.Contains(err.Error(), "web.service") {
		t.Errorf("the refusal does not name the owner: %v", err)
	}
	if _, err := host.Create(top + "/x"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "slices cannot be delegated") {
		t.Errorf("a group inside of a slice: %v", err)
	}
	other, err := host.Open(service.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if owner := other.Owner(); owner.Ownership != Systemd || owner.Unit != "web.service" {
		t.Errorf("owner %+v", owner)
	}
	if err := other.Join(os.Getpid()); !errors.Is(err, ErrNotOwner) {
		t.Errorf("join of a unit: %v", err)
	}

	markDelegated(t, service)
	payload, err := host.Create(path)
	if err != nil {
		t.Fatalf("below a delegated service: %v", err)
	}
	t.Cleanup(func() { payload.Destroy() })
	// The unit's own group stays systemd's, what is below is free.
	if owner := other.Owner(); owner.Ownership != Systemd {
		t.Errorf("owner of the unit %+v", owner)
	}
	again, err := host.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if owner := again.Owner(); owner.Ownership != Delegated || owner.Unit != "web.service" {
		t.Errorf("owner below the unit %+v", owner)
	}
	if err := again.Freeze(); err != nil {
		t.Errorf("freeze below a delegated unit: %v", err)
	}
	if err := again.Thaw(); err != nil {
		t.Error(err)
	}
	if owner := payload.Owner(); owner.Ownership != Ours {
		t.Errorf("owner of what was made %+v", owner)
	}
}

func makeGroupAt(t testing.TB, host *Host, path string, opts ...Option) *Group {
	t.Helper()
	var record []string // as if it were put there by the caller, whoever made what is above it
	for _, h := range host.Hierarchies() {
		record = append(record, h.Mountpoint+path)
	}
	g, err := host.Create(path, append(opts, Made(record))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, g) })
	return g
}

// What the manager of a delegated unit makes below it is his: units there
// are asked for their own delegation.
func TestInnerUnitDecides(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	needUnified(t, host)
	top := testPath() + ".slice"
	manager := makeGroupAt(t, host, top+"/user@1000.service")
	markDelegated(t, manager)
	scope := makeGroupAt(t, host, manager.Path()+"/app.slice/run-1.scope")
	if _, err := host.Create(scope.Path() + "/x"); !errors.Is(err, ErrNotOwner) {
		t.Errorf("below a scope of the user's manager: %v", err)
	}
	other, err := host.Open(scope.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if owner := other.Owner(); owner.Ownership != Systemd || owner.Unit != "run-1.scope" {
		t.Errorf("owner %+v", owner)
	}
}

func TestRootIsNobodys(t *testing.T) {
	host := hostForTest(t)
	root, err := host.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if owner := root.Owner(); owner.Ownership != Kernel {
		t.Errorf("owner %+v", owner)
	}
	if err := root.Kill(); !errors.Is(err, ErrNotOwner) || !strings.Contains(err.Error(), "root of the hierarchy") {
		t.Fatalf("kill of the root: %v", err)
	}
	forced, err := host.Open("/", Force())
	if err != nil {
		t.Fatal(err)
	}
	defer forced.Close()
	if err := forced.Kill(); !errors.Is(err, ErrNotOwner) {
		t.Fatalf("kill of the root by force: %v", err)
	}
	if err := forced.Signal(0); !errors.Is(err, ErrNotOwner) {
		t.Fatalf("signal to the root by force: %v", err)
	}
	if err := root.Freeze(); err == nil {
		t.Fatal("the root was frozen")
	}
	if err := root.Destroy(); err != nil {
		t.Errorf("destroy of the root, which removes nothing: %v", err)
	}
}

func TestUnitOf(t *testing.T) {
	for path, want := range map[string]string{
		"/": "", "/a/b": "", "/system.slice": "system.slice", "/system.slice/a.service/x/y": "a.service",
		"/user.slice/_cpu.service": "cpu.service", "/a.slice.d/b": "", "/.slice": "", "/x.mount/y": "x.mount",
	} {
		if got, _ := unitOf(path); got != want {
			t.Errorf("unit of %s: %q, want %q", path, got, want)
		}
	}
}

func TestDelegate(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	needUnified(t, host)
	g := makeGroup(t, host)
	const uid = 54321
	if err := g.Delegate(uid); err != nil {
		t.Fatal(err)
	}
	dir := g.Directory("unified")
	given := map[string]bool{"": true}
	for _, name := range host.delegateFiles() {
		given["/"+name] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{""}
	for _, entry := range entries {
		names = append(names, "/"+entry.Name())
	}
	for _, name := range names {
		info, err := os.Stat(dir + name)
		if err != nil {
			t.Fatal(err)
		}
		owner := int(info.Sys().(*syscall.Stat_t).Uid)
		if given[name] && owner != uid || !given[name] && owner != 0 {
			t.Errorf("%q belongs to %d", name, owner)
		}
	}
	for i := range g.nodes {
		if n := &g.nodes[i]; n.Version == 1 {
			if info, err := os.Stat(n.full("")); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
				t.Errorf("version 1's %s was handed over (%v)", n.full(""), err)
			}
		}
	}
	other, err := host.Open(g.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Delegate(uid); !errors.Is(err, ErrNotOwner) {
		t.Errorf("delegation of somebody else's group: %v", err)
	}
}

func TestDelegateFiles(t *testing.T) {
	old := fakeHost(t, map[string]string{"proc/self/mountinfo": ""})
	if got := strings.Join(old.delegateFiles(), " "); got != "cgroup.procs cgroup.subtree_control cgroup.threads" {
		t.Errorf("without the kernel's list: %s", got)
	}
	odd := fakeHost(t, map[string]string{"proc/self/mountinfo": "", "sys/kernel/cgroup/delegate": "cgroup.procs\n../x\n..\nmemory.oom.group\n"})
	if got := strings.Join(odd.delegateFiles(), " "); got != "cgroup.procs memory.oom.group" {
		t.Errorf("with an odd list: %s", got)
	}
}

// An ordinary user in a delegated group makes groups below it, with himself
// moved out of the way, and nowhere else.
func TestOrdinaryUserInDelegatedGroup(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	u := needUnified(t, host)
	g := makeGroup(t, host)
	markDelegated(t, g)
	if err := g.Delegate(54321); err != nil {
		t.Fatal(err)
	}
	// The files of the scope itself are the user's too, as with systemd's User=.
	self := roleCommand("user:" + g.Path())
	var out strings.Builder
	self.Stdout, self.Stderr = &out, &out
	self.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	gate, err := self.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := self.Start(); err != nil {
		t.Skipf("no other user can be had: %v", err)
	}
	if err := g.Join(self.Process.Pid); err != nil {
		t.Fatal(err)
	}
	gate.Close()
	if err := self.Wait(); err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
	if len(u.Controllers) > 0 {
		restoreSubtreeControl(t, u)
	}
}

func init() {
	roles["user"] = func(path string) {
		fail := func(format string, args ...any) {
			fmt.Printf(format+"\n", args...)
			os.Exit(1)
		}
		host, err := Detect()
		if err != nil {
			fail("detect: %v", err)
		}
		if _, err := host.Create("/" + "berth-test-nobody"); !Denied(err) || !errors.Is(err, fs.ErrPermission) {
			fail("a group at the root: %v", err)
		}
		base, err := host.Base()
		if err != nil || base != path {
			fail("base %q, %v; want %q", base, err, path)
		}
		place, err := host.ResolvePath("", "c1")
		if err != nil || place != path+"/berth/c1" {
			fail("place %q, %v", place, err)
		}
		g, err := host.Create(place, WherePermitted(), Supervisor("supervisor"))
		if err != nil {
			fail("create: %v", err)
		}
		if len(g.Made()) != 2 {
			fail("made %q", g.Made())
		}
		if err := g.Join(os.Getpid()); err != nil {
			fail("join: %v", err)
		}
		own, err := host.OfProcess(0, Only("unified"))
		if err != nil || own.Path() != place {
			fail("this process is in %v, %v", own, err)
		}
		host.Timeout = time.Millisecond
		if err := g.Destroy(); !errors.Is(err, ErrBusy) {
			fail("destroy with ourselves inside: %v", err)
		}
		os.Exit(0)
	}
}

func TestResolvePath(t *testing.T) {
	host := fakeHost(t, map[string]string{"proc/self/mountinfo": unifiedTable, "proc/self/cgroup": "0::/user.slice/a.scope\n",
		"sys/fs/cgroup/cgroup.controllers": "cpu\n"})
	if !host.privileged() {
		t.Skip("the fake tree is not writable")
	}
	tests := []struct{ path, id, want string }{
		{"/docker/x", "x", "/docker/x"},
		{"/docker//x/", "x", "/docker/x"},
		{"", "x", "/berth/x"},
		{"", "cpu.shares", "/berth/_cpu.shares"},
		{"machine/x", "x", "/machine/x"},
		{"../x", "x", ""},
		{"/a/../../x", "x", ""},
		{"system.slice:berth:x", "x", ""},
	}
	for _, test := range tests {
		got, err := host.ResolvePath(test.path, test.id)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%q: %q, %v; want %q", test.path, got, err, test.want)
		}
	}
}

func TestNoInternalProcesses(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	u := needUnified(t, host)
	controller := domainController(t, u)
	restoreSubtreeControl(t, u)
	parent := makeGroup(t, host, Only("unified"))
	cmd := start(t, parent, "sleep")
	_, err := host.Create(parent.Path()+"/x", Only("unified"), Enable(controller))
	var e *Error
	if !errors.As(err, &e) || !errors.Is(err, syscall.EBUSY) || !strings.Contains(e.Hint, strconv.Itoa(cmd.Process.Pid)) {
		t.Fatalf("got %v", err)
	}
	// Not demanded, it is left out.
	g, err := host.Create(parent.Path()+"/x", Only("unified"))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Destroy(); err != nil {
		t.Fatal(err)
	}
	// In a delegated place the processes are moved, if asked for.
	markDelegated(t, parent)
	g, err = host.Create(parent.Path()+"/x", Only("unified"), Enable(controller), Supervisor("supervisor"))
	if err != nil {
		t.Fatal(err)
	}
	if own, err := host.OfProcess(cmd.Process.Pid, Only("unified")); err != nil || own.Path() != parent.Path()+"/supervisor" {
		t.Errorf("the process is in %v, %v", own, err)
	} else {
		own.Close()
	}
	if got := readFileOf(t, g, "unified", "cgroup.controllers"); !strings.Contains(got, controller) {
		t.Errorf("controllers %q", got)
	}
	// And the other way round: a group that gives controllers takes no processes.
	if err := parent.Join(cmd.Process.Pid); !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "gives controllers to its children ("+controller) {
		t.Errorf("got %v", err)
	}
	if err := g.Destroy(); err != nil {
		t.Error(err)
	}
}

// domainController finds a controller that is not for threads.
func domainController(t testing.TB, u *Hierarchy) string {
	t.Helper()
	for _, name := range u.Controllers {
		switch name {
		case "cpu", "cpuset", "pids", "perf_event":
		default:
			return name
		}
	}
	t.Skip("no domain controller on version 2 here")
	return ""
}

func TestControllerThatIsNotThere(t *testing.T) {
	host := hostForTest(t)
	needUnified(t, host)
	if _, err := host.Create(testPath(), Enable("nonsense")); !errors.Is(err, ErrNoController) {
		t.Errorf("got %v", err)
	}
	for _, h := range host.Hierarchies() {
		if h.Version == 1 && len(h.Controllers) > 0 {
			_, err := host.Create(testPath(), Enable(h.Controllers[0]))
			if !errors.Is(err, ErrNoController) || !strings.Contains(err.Error(), "version 1") {
				t.Errorf("got %v", err)
			}
			break
		}
	}
}

func TestThreadedGroups(t *testing.T) {
	host := hostForTest(t)
	needUnified(t, host)
	parent := makeGroup(t, host, Only("unified"))
	threaded, err := host.Create(parent.Path()+"/t", Only("unified"), Enable())
	if err != nil {
		t.Fatal(err)
	}
	defer threaded.Destroy()
	invalid, err := host.Create(parent.Path()+"/i", Only("unified"), Enable())
	if err != nil {
		t.Fatal(err)
	}
	defer invalid.Destroy()
	if err := os.WriteFile(threaded.Directory("unified")+"/cgroup.type", []byte("threaded"), 0); err != nil {
		t.Fatal(err)
	}
	for g, want := range map[*Group]Type{parent: DomainThreaded, threaded: Threaded, invalid: DomainInvalid} {
		if kind, err := g.Type(); kind != want || err != nil {
			t.Errorf("%s is %q, %v; want %q", g.Path(), kind, err, want)
		}
	}
	cmd := roleCommand("sleep")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if err := invalid.Join(cmd.Process.Pid); !errors.Is(err, syscall.EOPNOTSUPP) || !strings.Contains(err.Error(), "domain invalid") {
		t.Errorf("join of an invalid domain: %v", err)
	}
	if err := parent.Join(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(threaded.Directory("unified")+"/cgroup.threads", []byte(strconv.Itoa(cmd.Process.Pid)), 0); err != nil {
		t.Fatal(err)
	}
	if pids, err := threaded.Procs(); err != nil || len(pids) != 1 || pids[0] != cmd.Process.Pid {
		t.Errorf("threads of the threaded group: %v, %v", pids, err)
	}
	if err := threaded.Kill(); err != nil {
		t.Errorf("kill of a threaded group: %v", err)
	}
	if err := parent.WaitEmpty(); err != nil {
		t.Error(err)
	}
}
