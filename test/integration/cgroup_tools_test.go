package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// What create made, later calls know as their own; the parents that it had to make stay.
func TestCgroupLife(t *testing.T) {
	b := harness.New(t)
	parent := demo(b)
	child := parent + "/child"
	tool(b, "create", child).OK(t)
	tool(b, "create", child).OK(t) // there is nothing to complain about
	listed := tool(b, "list", parent).OK(t).Stdout
	for _, h := range harness.Hierarchies(t) {
		if !strings.Contains(listed, ":"+child+"\n") {
			t.Errorf("%s is not in the list of %s:\n%s", child, h.Dir, listed)
		}
		if _, err := os.Stat(filepath.Join(h.Dir, child)); err != nil {
			t.Error(err)
		}
	}
	tool(b, "delete", parent).Fails(t, "below it", "child", "-r")
	tool(b, "delete", child).OK(t)
	if got := tool(b, "list", parent).OK(t).Stdout; strings.Contains(got, "child") || !strings.Contains(got, ":"+parent+"\n") {
		t.Errorf("after the removal of the child:\n%s", got)
	}
	tool(b, "create", parent+"/a/b/c").OK(t)
	tool(b, "delete", "-r", parent).OK(t)
	if left := b.Cgroups(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	tool(b, "create", parent).OK(t)
}

func TestCgroupInSomeHierarchies(t *testing.T) {
	b := harness.New(t)
	needCgroupTools(b)
	memory, pids := harness.Controller(t, "memory"), harness.Controller(t, "pids")
	if memory.Dir == pids.Dir {
		harness.Skip(t, "needs memory and pids in different hierarchies")
	}
	path := "/" + b.Tag
	tool(b, "create", "-g", "memory:"+path).OK(t)
	t.Cleanup(func() { tool(b, "delete", "--force", path).OK(t) })
	if left := b.Cgroups(); len(left) != 1 || left[0] != filepath.Join(memory.Dir, path) {
		t.Errorf("made: %q", left)
	}
	tool(b, "set", "pids.limit=5", path).Fails(t, "pids")
	tool(b, "create", "-g", "nonsense:"+path).Fails(t, "nonsense")
}

// The command's status is its own, and so are its arguments that look like options.
func TestCgroupExec(t *testing.T) {
	b := harness.New(t)
	path := demo(b)
	got := tool(b, "exec", path, "sh", "-c", "cat /proc/self/cgroup; exit 7").Exits(t, 7).Lines()
	if len(got) == 0 {
		t.Fatal("the command printed nothing")
	}
	own := readFile(t, "/proc/self/cgroup")
	for _, line := range got {
		// Where systemd has its units, and others have the controllers, a process stays in its own.
		unit := !onV2(t) && (strings.HasPrefix(line, "0::") || strings.Contains(line, ":name=systemd:"))
		if !strings.HasSuffix(line, ":"+path) && !(unit && strings.Contains(own, line+"\n")) {
			t.Errorf("the command is not in the cgroup: %s", line)
		}
	}
	// As scripts for cgexec have it.
	for _, args := range [][]string{{"exec", "--sticky", path}, {"exec", "--sticky", "-g", "*:" + path}} {
		if sticky := tool(b, append(args, "cat", "/proc/self/cgroup")...).OK(t).Stdout; !strings.Contains(sticky, ":"+path+"\n") {
			t.Errorf("%q: the command is in\n%s", args, sticky)
		}
	}
	if r := tool(b, "exec", "-g", "*:"+path, "--", "sh", "-c", "kill -9 $$"); r.Code != -1 {
		t.Errorf("killed by a signal, it exits with %d", r.Code)
	}
	tool(b, "exec", path, "no-such-program").FailsWith(t, 127, "no-such-program")
	tool(b, "exec", path, "/etc").FailsWith(t, 126, "/etc")
	tool(b, "exec", path).FailsWith(t, 125, "no command")
	tool(b, "exec", path+"/none", "true").FailsWith(t, 125, path+"/none", "no such file or directory")
}

func TestCgroupClassifyAndDelete(t *testing.T) {
	b := harness.New(t)
	path := demo(b)
	sleep := exec.Command("sleep", "1000")
	if err := sleep.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sleep.Process.Kill()
		sleep.Wait()
	})
	pid := strconv.Itoa(sleep.Process.Pid)
	member := func() bool {
		text, err := os.ReadFile(procPath(sleep.Process.Pid, "cgroup"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), path)
	}
	tool(b, "classify", path, pid).OK(t)
	if !member() {
		t.Error("the process is not in the cgroup")
	}
	if tree := tool(b, "tree", "-p", path).OK(t).Stdout; !strings.Contains(tree, pid+" sleep 1000") {
		t.Errorf("the tree does not show the process:\n%s", tree)
	}
	tool(b, "delete", path).Fails(t, "processes", pid, "--kill")
	tool(b, "delete", "--kill", "--move", path).Fails(t, "one or the other")
	// To the root, which is nobody's, it moves as the removal of what is ours.
	tool(b, "delete", "--move", path).OK(t)
	if member() || len(b.Cgroups()) > 0 {
		t.Errorf("after the removal: member %v, left %q", member(), b.Cgroups())
	}
	tool(b, "create", path).OK(t)
	tool(b, "classify", path, pid).OK(t)
	tool(b, "delete", "--kill", path).OK(t)
	if err := sleep.Wait(); err == nil {
		t.Error("the process lived on")
	}
	tool(b, "create", path).OK(t)
	tool(b, "classify", path, "none").Fails(t, "none")
}

// A process comes into all of the cgroups that are named, or stays where it is; others that are
// named beside it come in.
func TestCgroupClassifyIntoSeveral(t *testing.T) {
	b := harness.New(t)
	path := demo(b)
	home, refusing := path+"/home", path+"/refusing"
	tool(b, "create", home).OK(t)
	tool(b, "create", refusing).OK(t)
	var pids []string
	for range 2 {
		sleep := exec.Command("sleep", "1000")
		must(t, sleep.Start())
		t.Cleanup(func() {
			sleep.Process.Kill()
			sleep.Wait()
		})
		pids = append(pids, strconv.Itoa(sleep.Process.Pid))
	}
	memberships := func(pid string) string { return readFile(t, "/proc/"+pid+"/cgroup") }
	before := memberships(pids[0])
	// Nobody may enter a cpuset of version 1 that is empty, nor a cgroup of version 2 that gives
	// its children a controller that knows no threads.
	file, value := "cpuset.cpus", "\n"
	if harness.Controller(t, "cpuset").Unified {
		file, value = "cgroup.subtree_control", "+memory"
	}
	must(t, os.WriteFile(filepath.Join(dirOf(t, "cpuset", refusing), file), []byte(value), 0))
	tool(b, "classify", "-g", "*:"+home, "-g", "*:"+refusing, pids[0]).Fails(t, refusing)
	if after := memberships(pids[0]); after != before {
		t.Errorf("it was in\n%sand is in\n%s", before, after)
	}
	tool(b, "classify", home, pids[0], "4194304", pids[1]).Fails(t, "there is no such process")
	for _, pid := range pids {
		if in := memberships(pid); !strings.Contains(in, home+"\n") {
			t.Errorf("%s is in\n%s", pid, in)
		}
	}
}

// The refusal names the unit that a cgroup belongs to.
func TestCgroupOfUnit(t *testing.T) {
	b := harness.New(t)
	needCgroupTools(b)
	h := harness.Controller(t, "pids")
	unit := b.Tag + ".service"
	dir := filepath.Join(h.Dir, unit)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(dir) })
	tool(b, "create", "-g", "pids:/"+unit+"/child").Fails(t, unit, "not delegated")
	tool(b, "set", "pids.max=5", "/"+unit).Fails(t, unit, "not delegated")
	tool(b, "delete", "/"+unit).Fails(t, unit)
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

// A cgroup that is handed over may be limited by its new owner, without --force, and by no other.
func TestCgroupHandedOver(t *testing.T) {
	b := harness.New(t)
	needCgroupTools(b)
	harness.Controller(t, "pids")
	path := "/" + b.Tag
	tool(b, "create", "-a", "12345:12345", "-t", "12345:23456", "-d", "750", path).OK(t)
	t.Cleanup(func() { tool(b, "delete", path).OK(t) })
	dir := dirOf(t, "pids", path)
	for file, want := range map[string][2]uint32{".": {12345, 12345}, "pids.max": {12345, 12345}, "cgroup.procs": {12345, 23456}} {
		var st syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, file), &st); err != nil {
			t.Fatal(err)
		}
		if st.Uid != want[0] || st.Gid != want[1] || file == "." && st.Mode&0o777 != 0o750 {
			t.Errorf("%s: owner %d:%d, mode %o", file, st.Uid, st.Gid, st.Mode)
		}
	}
	as := func(uid uint32, args ...string) harness.Result {
		c := b.Command(append([]string{"cgroup"}, args...)...)
		c.Attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		return c.Run()
	}
	as(12345, "set", "pids.max=7", path).OK(t)
	if got := fileOf(t, "pids", path, "pids.max", "pids.max"); got != "7" {
		t.Errorf("pids.max is %s", got)
	}
	as(23456, "set", "pids.max=8", path).Exits(t, 1)
	as(23456, "set", "--force", "pids.max=8", path).Exits(t, 1)
	if got := fileOf(t, "pids", path, "pids.max", "pids.max"); got != "7" {
		t.Errorf("pids.max is %s: a stranger set it", got)
	}
}

func TestCgroupTreeAndTopAsJSON(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "memory")
	path := demo(b)
	tool(b, "set", "memory.limit=64M", path).OK(t)
	var tree struct {
		Path        string
		MemoryLimit uint64
		MemoryBytes *uint64
		Hierarchies []string
	}
	harness.Decode(t, tool(b, "tree", "--json", path).OK(t).Stdout, &tree)
	if tree.Path != path || tree.MemoryLimit != 64<<20 || tree.MemoryBytes == nil || len(tree.Hierarchies) != len(harness.Hierarchies(t)) {
		t.Errorf("%+v", tree)
	}
	r := tool(b, "top", "--json", "-n", "2", "-d", "0.1", "-m", path).OK(t)
	if lines := r.Lines(); len(lines) != 2 {
		t.Fatalf("%d lines for two rounds: %s", len(lines), r.Stdout)
	}
	var rows []struct {
		Path          string
		CPUProcessors *float64
	}
	harness.Decode(t, r.Lines()[1], &rows)
	if len(rows) != 1 || rows[0].Path != path || rows[0].CPUProcessors == nil {
		t.Errorf("%+v", rows)
	}
	// Plain lines have neither colours nor the sequences of a live view.
	if text := tool(b, "top", "-d", "0.1").OK(t).Stdout; strings.Contains(text, "\x1b") || !strings.Contains(text, path) {
		t.Errorf("plain lines: %q", text)
	}
}

func TestCgroupTopAtTerminal(t *testing.T) {
	b := harness.New(t)
	path := demo(b)
	term := b.Terminal()
	before := term.Settings()
	c := b.Command("cgroup", "top", "-d", "0.2", path)
	c.Stdin, c.Stdout, c.Stderr = term.Slave, term.Slave, term.Slave
	c.Env = []string{"TERM=xterm", "LC_ALL=C.UTF-8", "NO_COLOR=1"}
	c.Attr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	top := c.Start()
	term.Until("\x1b[?1049h")
	screen := term.Until("q quit")
	if !strings.Contains(screen, "%CPU") || !strings.Contains(screen, path) {
		t.Errorf("the first screen: %q", screen)
	}
	if strings.Contains(screen, "\x1b[3") {
		t.Errorf("there are colours in spite of NO_COLOR: %q", screen)
	}
	term.Resize(10, 40)
	for {
		// The whole help for the keys does not fit any more.
		if screen := term.Until("\x1b[J"); strings.Contains(screen, "…") && !strings.Contains(screen, "q quit") {
			break
		}
	}
	term.Write("mq")
	top.Wait().OK(t)
	term.Until("\x1b[?1049l")
	if after := term.Settings(); after != before {
		t.Errorf("settings before: %s\nafter: %s", before, after)
	}
}

func TestCgroupControllersOfThisHost(t *testing.T) {
	b := harness.New(t)
	needCgroupTools(b)
	text := tool(b, "controllers").OK(t).Stdout
	mounts := tool(b, "controllers", "-m").OK(t).Stdout
	for _, h := range harness.Hierarchies(t) {
		if !strings.Contains(mounts, " "+h.Dir+"\n") {
			t.Errorf("%s is missing in\n%s", h.Dir, mounts)
		}
		for _, word := range h.Controllers {
			if word == "rw" || strings.ContainsAny(word, "=") || word == "xattr" {
				continue // flags of the mount
			}
			if !strings.Contains("\n"+text, "\n"+word+" ") {
				t.Errorf("%s of %s is missing in\n%s", word, h.Dir, text)
			}
		}
	}
}

// The page of the docs is what the ledger says today.
func TestLedgerPageIsCurrent(t *testing.T) {
	b := harness.New(t)
	needCgroupTools(b)
	page, err := os.ReadFile("../../docs/cgroup-ledger.md")
	if err != nil {
		harness.Skip(t, "needs the source tree beside the tests: %v", err)
	}
	if tool(b, "ledger", "--markdown").OK(t).Stdout != string(page) {
		t.Error("docs/cgroup-ledger.md is not current: run make docs")
	}
	var rows []struct{ Field string }
	harness.Decode(t, tool(b, "ledger", "--json").OK(t).Stdout, &rows)
	if len(rows) < 40 || rows[0].Field != "/memory/limit" {
		t.Errorf("%d rows, the first %+v", len(rows), rows[:1])
	}
}

// Translating needs neither root nor a cgroup.
func TestTranslateAsNobody(t *testing.T) {
	b := harness.New(t)
	needCgroupTools(b)
	file := b.WriteFile("resources.json", `{"cpu": {"shares": 1024}, "memory": {"limit": 1048576}}`, 0o644)
	c := b.Command("cgroup", "translate", "--layout", "unified", "--systemd", "252", "--shares", "linear", file)
	c.Attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	text := c.Run().OK(t).Stdout
	for _, want := range []string{"CPUWeight", "39", "linear", "MemoryMax"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	tool(b, "translate", "--layout", "odd", file).Fails(t, "odd", "unified")
	tool(b, "translate", "--layout", "unified", b.WriteFile("bad.json", `{"memory": {"swappiness": 1}}`, 0o644)).Fails(t, "/memory/swappiness")
}

// A cgroup that is closed to others is left out of what they see of the tree, and breaks nothing.
func TestCgroupToolsPassOverWhatIsClosed(t *testing.T) {
	b := harness.New(t)
	needCgroupTools(b)
	closed, open := "/"+b.Tag+"-closed", "/"+b.Tag+"-open"
	tool(b, "create", "-d", "700", closed).OK(t)
	t.Cleanup(func() { tool(b, "delete", "-r", closed).OK(t) })
	tool(b, "create", closed+"/inner").OK(t)
	tool(b, "create", open).OK(t)
	t.Cleanup(func() { tool(b, "delete", open).OK(t) })
	for _, args := range [][]string{{"list"}, {"controllers"}, {"tree"}, {"top", "-n", "1", "-d", "0.1"}} {
		c := b.Command(append([]string{"cgroup"}, args...)...)
		c.Attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
		r := c.Run().OK(t)
		if args[0] != "controllers" && (!strings.Contains(r.Stdout, open[1:]) || !strings.Contains(r.Stdout, closed[1:])) {
			t.Errorf("%v leaves out what it can see:\n%s", args, r.Stdout)
		}
		if strings.Contains(r.Stdout, "inner") || !strings.Contains(r.Stderr, "closed to this user, are left out") {
			t.Errorf("%v: %s%s", args, r.Stdout, r.Stderr)
		}
	}
}
