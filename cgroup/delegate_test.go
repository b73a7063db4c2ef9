package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
		t.Errorf("delegation of another's group: %v", err)
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

// Root in a group of a user's, as by sudo, makes none there, whatever that user has it marked as:
// who owns a group can freeze and kill all that is below.
func TestRootLeavesGroupsOfUsersAlone(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	needUnified(t, host)
	for name, owners := range map[string][2]int{"a scope of a user's": {54321, 54321}, "a scope of root's below a user's": {54321, 0}, "root's own": {0, 0}} {
		t.Run(name, func(t *testing.T) {
			top := makeGroupAt(t, host, testPath()+".service")
			inner := makeGroupAt(t, host, top.Path()+"/app.scope")
			markDelegated(t, inner)
			for i, g := range []*Group{top, inner} {
				if err := os.Chown(g.Directory("unified"), owners[i], owners[i]); err != nil {
					t.Fatal(err)
				}
			}
			self := roleCommand("base")
			var out strings.Builder
			self.Stdout, self.Stderr = &out, &out
			gate, err := self.StdinPipe()
			if err == nil {
				err = self.Start()
			}
			if err == nil {
				err = inner.Join(self.Process.Pid)
			}
			if err != nil {
				t.Fatal(err)
			}
			gate.Close()
			if err := self.Wait(); err != nil {
				t.Fatalf("%v: %s", err, out.String())
			}
			want := "/"
			if owners == [2]int{} {
				want = inner.Path()
			}
			if got := strings.TrimSpace(out.String()); got != want {
				t.Errorf("root may have groups of its own in %s, want %s", got, want)
			}
		})
	}
}

func init() {
	roles["base"] = func(string) {
		host, err := Detect()
		base := ""
		if err == nil {
			base, err = host.Base()
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(base)
		os.Exit(0)
	}
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
