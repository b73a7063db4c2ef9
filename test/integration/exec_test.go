package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

// hanging starts a container that does nothing, for others to be added to it.
func hanging(b *harness.Box) *harness.Container {
	b.T.Helper()
	return b.Container("/inside", "hang").RunDetached()
}

func lookBy(c *harness.Container, flags ...string) *view.View {
	c.Box.T.Helper()
	return harness.ParseView(c.Box.T, c.Exec(flags, "/inside", "look").OK(c.Box.T).Stdout)
}

// A process that is added is where the container is, with what its config gives to processes.
func TestExec(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	c.Spec.Process.Cwd, c.Spec.Process.Env = "/tmp", append(c.Spec.Process.Env, "FROM=config")
	c.Spec.Process.User.UID, c.Spec.Process.User.GID = 1000, 1001
	c.RunDetached()
	v := lookBy(c)
	theirs := processNamespaces(t, c.PID)
	for kind, name := range v.NS {
		if want, ok := theirs[kind]; ok && name != want {
			t.Errorf("namespace %s is %s, the container's %s", kind, name, want)
		}
	}
	if v.Cwd != "/tmp" || !slices.Contains(v.Env, "FROM=config") || v.Status["Uid"] != "1000 1000 1000 1000" || v.Status["Gid"] != "1001 1001 1001 1001" {
		t.Errorf("in %s as %s %s with %q", v.Cwd, v.Status["Uid"], v.Status["Gid"], v.Env)
	}
	if len(v.FDs) != 3 || v.PID == 1 {
		t.Errorf("process %d has %v", v.PID, v.FDs)
	}
	own := strings.Split(strings.TrimSpace(readFile(t, procPath(c.PID, "cgroup"))), "\n")
	if len(v.Cgroups) != len(own) || slices.ContainsFunc(v.Cgroups, func(line string) bool { return !strings.HasSuffix(line, ":/") }) {
		t.Errorf("it is in the cgroups %q", v.Cgroups)
	}
	c.Exec(nil, "/bin/sh", "-c", "exit 37").Exits(t, 37)
	c.Exec(nil, "/bin/sh", "-c", "kill -TERM $$").Exits(t, 128+15)
	c.Exec(nil, "/no/such/program").FailsWith(t, 255, "/no/such/program")
}

// Each flag, by what the process sees.
func TestExecFlags(t *testing.T) {
	b := harness.New(t)
	c := hanging(b)
	if v := lookBy(c, "--cwd", "/home/user"); v.Cwd != "/home/user" {
		t.Errorf("--cwd: %s", v.Cwd)
	}
	v := lookBy(c, "--env", "A=1", "-e", "B=2=3")
	if !slices.Contains(v.Env, "A=1") || !slices.Contains(v.Env, "B=2=3") || !slices.ContainsFunc(v.Env, func(e string) bool { return strings.HasPrefix(e, "PATH=") }) {
		t.Errorf("--env: %q", v.Env)
	}
	for flag, want := range map[string][3]string{
		"7":            {"7 7 7 7", "0 0 0 0", ""},
		"7:8":          {"7 7 7 7", "8 8 8 8", ""},
		"user":         {"1000 1000 1000 1000", "1001 1001 1001 1001", "2000"},
		"user:players": {"1000 1000 1000 1000", "2000 2000 2000 2000", ""},
	} {
		v := lookBy(c, "--user", flag)
		if v.Status["Uid"] != want[0] || v.Status["Gid"] != want[1] || want[2] != "" && !slices.Contains(strings.Fields(v.Status["Groups"]), want[2]) {
			t.Errorf("--user %s: uid %s, gid %s, groups %s", flag, v.Status["Uid"], v.Status["Gid"], v.Status["Groups"])
		}
	}
	c.Exec([]string{"--user", "nobody-like-that"}, "/bin/true").FailsWith(t, 255, "nobody-like-that")
	if v := lookBy(c, "--additional-gids", "44", "-g", "45"); v.Status["Groups"] != "44 45" {
		t.Errorf("--additional-gids: %s", v.Status["Groups"])
	}
	if v := lookBy(c); v.Status["NoNewPrivs"] != "0" {
		t.Errorf("without --no-new-privs: %s", v.Status["NoNewPrivs"])
	}
	if v := lookBy(c, "--no-new-privs"); v.Status["NoNewPrivs"] != "1" {
		t.Errorf("--no-new-privs: %s", v.Status["NoNewPrivs"])
	}
	if caps := harness.Caps(t, lookBy(c, "--cap", "CAP_SYS_TIME"), "Eff"); !slices.Contains(caps, "CAP_SYS_TIME") || !slices.Contains(caps, "CAP_CHOWN") {
		t.Errorf("--cap: %q", caps)
	}
	c.Extra = extraFiles(b, "three")
	r := c.Exec([]string{"--preserve-fds", "1"}, "/inside", "try", "read-fd=3").OK(t)
	if got := harness.ParseAttempts(t, r.Stdout)["read-fd=3"].Result; got != "three" {
		t.Errorf("--preserve-fds: %q", got)
	}
	c.Extra = nil
}

// --process takes an object of the specification, with all that is in it.
func TestExecProcess(t *testing.T) {
	b := harness.New(t)
	c := hanging(b)
	umask, adjust := uint32(0o27), 300
	data, err := json.Marshal(&specs.Process{
		Args: []string{"/inside", "look"}, Cwd: "/var", Env: []string{"ONLY=this"}, NoNewPrivileges: true, OOMScoreAdj: &adjust,
		User:         specs.User{UID: 5, GID: 6, Umask: &umask, AdditionalGids: []uint32{7}},
		Capabilities: &specs.LinuxCapabilities{Bounding: []string{"CAP_KILL"}},
		Rlimits:      []specs.POSIXRlimit{{Type: "RLIMIT_CORE", Soft: 1, Hard: 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := b.WriteFile("process.json", string(data), 0o644)
	v := harness.ParseView(t, c.Exec([]string{"--process", file}).OK(t).Stdout)
	if v.Cwd != "/var" || !slices.Contains(v.Env, "ONLY=this") || v.Status["Uid"] != "5 5 5 5" || v.Status["Groups"] != "7" ||
		v.Status["Umask"] != "0027" || v.Status["NoNewPrivs"] != "1" || strings.TrimSpace(v.OOMScore) != "300" {
		t.Errorf("%+v", v)
	}
	if got := harness.Caps(t, v, "Bnd"); !slices.Equal(got, []string{"CAP_KILL"}) {
		t.Errorf("bounding set %q", got)
	}
	if got := v.Limits["RLIMIT_CORE"]; got != (view.Limit{Soft: 1, Hard: 2}) {
		t.Errorf("limit %+v", got)
	}
	wrong := b.WriteFile("wrong.json", `{"args": ["x"], "cwd": "here"}`, 0o644)
	c.Exec([]string{"--process", wrong}).FailsWith(t, 255, "/cwd", "absolute")
}

// What a process object is silent about, it has from the container: otherwise a
// short one would run with the engine's own rights.
func TestExecProcessInherits(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	adjust := 300
	c.Spec.Process.OOMScoreAdj = &adjust
	c.Spec.Process.Capabilities = &specs.LinuxCapabilities{Bounding: []string{"CAP_KILL"}, Permitted: []string{"CAP_KILL"}, Effective: []string{"CAP_KILL"}}
	c.RunDetached()
	file := b.WriteFile("process.json", `{"args": ["/inside", "look"], "cwd": "/", "user": {"uid": 0, "gid": 0}}`, 0o644)
	v := harness.ParseView(t, c.Exec([]string{"--process", file}).OK(t).Stdout)
	for _, set := range []string{"Bnd", "Prm", "Eff"} {
		wantCaps(t, v, set, "CAP_KILL")
	}
	if strings.TrimSpace(v.OOMScore) != "300" {
		t.Errorf("oom_score_adj is %s", v.OOMScore)
	}
}

// In the background, known by its pid and by a pidfd, and gone with the container.
func TestExecDetached(t *testing.T) {
	b := harness.New(t)
	c := hanging(b)
	s := b.FDSocket("pidfd.sock")
	pidFile := b.Path("exec.pid")
	c.Exec([]string{"--detach", "--pid-file", pidFile, "--pidfd-socket", s.Path}, "/inside", "hang").OK(t)
	pid, err := strconv.Atoi(readFile(t, pidFile))
	if err != nil {
		t.Fatal(err)
	}
	_, fd := s.ReceiveOne()
	defer unix.Close(fd)
	if info := readFile(t, "/proc/self/fdinfo/"+strconv.Itoa(fd)); !slices.Contains(strings.Fields(info), strconv.Itoa(pid)) {
		t.Errorf("the pidfd is not of %d:\n%s", pid, info)
	}
	if got := processNamespaces(t, pid)["pid"]; got != processNamespaces(t, c.PID)["pid"] {
		t.Errorf("process %d is in %s", pid, got)
	}
	// The first process of a pid namespace is not gone before all others of it have been waited
	// for.
	c.Kill("KILL")
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil || status.Signal() != unix.SIGKILL {
		t.Errorf("the added process ended with %v, %v", status, err)
	}
	c.WaitExit()
	c.Delete()
}

// A terminal of the container's own, whose master comes by the socket.
func TestExecTerminal(t *testing.T) {
	b := harness.New(t)
	c := hanging(b)
	s := b.FDSocket("console.sock")
	pidFile := b.Path("exec.pid")
	c.Exec([]string{"--tty", "--detach", "--console-socket", s.Path, "--pid-file", pidFile}, "/bin/sh", "-c", "tty; read x; echo got $x; exit 4").OK(t)
	pid, err := strconv.Atoi(readFile(t, pidFile))
	if err != nil {
		t.Fatal(err)
	}
	master := s.ReceiveTerminal()
	if got := master.Until("/dev/pts/"); !strings.Contains(got, "/dev/pts/") {
		t.Errorf("the terminal is %q", got)
	}
	master.Write("word\n")
	if got := master.All(); !strings.Contains(got, "got word") {
		t.Errorf("the terminal said %q", got)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, 0, nil); err != nil || status.ExitStatus() != 4 {
		t.Errorf("ended with %v, %v", status, err)
	}
	c.Exec([]string{"--tty", "--detach"}, "/bin/true").FailsWith(t, 255, "console-socket")
}

// --cgroup puts the process below the container's cgroup.
func TestExecCgroup(t *testing.T) {
	b := harness.New(t)
	h := harness.Controller(t, "pids")
	c := hanging(b)
	made := filepath.Join(h.Dir, c.Spec.Linux.CgroupsPath, "sub")
	if err := os.Mkdir(made, 0o755); err != nil {
		t.Fatal(err)
	}
	name := "pids:sub"
	if h.Unified {
		name = "sub"
	}
	v := lookBy(c, "--cgroup", name)
	if !slices.ContainsFunc(v.Cgroups, func(line string) bool { return strings.HasSuffix(line, ":/sub") }) {
		t.Errorf("it is in %q", v.Cgroups)
	}
	c.Exec([]string{"--cgroup", "../outside"}, "/bin/true").FailsWith(t, 255, "../outside", "out of the container")
	c.Exec([]string{"--cgroup", "nothing:sub"}, "/bin/true").FailsWith(t, 255, "--cgroup", "nothing")
}

// Once something in the container gives controllers to cgroups below its own, as systemd does, that
// one holds no processes any more: what is added begins beside the first process. So in a container
// that may write to its cgroup, which enters by its own hand.
func TestExecBesideFirstProcess(t *testing.T) {
	for _, name := range []string{"read-only", "writable"} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			all := harness.Hierarchies(t)
			i := slices.IndexFunc(all, func(h harness.Hierarchy) bool { return h.Unified })
			if i < 0 {
				harness.Skip(t, "needs cgroup v2")
			}
			c := b.Container("/inside", "hang")
			m := specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup"}
			if name == "read-only" {
				m.Options = []string{"ro"}
			}
			c.Spec.Mounts = append(c.Spec.Mounts, m)
			c.RunDetached()
			dir := filepath.Join(all[i].Dir, c.Spec.Linux.CgroupsPath)
			controllers, _ := os.ReadFile(dir + "/cgroup.controllers")
			if !slices.Contains(strings.Fields(string(controllers)), "pids") {
				harness.Skip(t, "needs the controller pids on cgroup v2, has %q", controllers)
			}
			if err := os.Mkdir(dir+"/first", 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir+"/first/cgroup.procs", []byte(strconv.Itoa(c.PID)), 0); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(dir+"/cgroup.subtree_control", []byte("+pids"), 0); err != nil {
				t.Fatal(err)
			}
			if v := lookBy(c); !slices.ContainsFunc(v.Cgroups, func(line string) bool { return strings.HasSuffix(line, "/first") }) {
				t.Errorf("it is in %q", v.Cgroups)
			}
		})
	}
}

// A created container can be paused as well: then it says so, is not started, and goes
// on to its gate when it is resumed.
func TestPauseCreated(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").Create()
	c.Command("pause", nil).Run().OK(t)
	if got := c.State().Status; got != "paused" {
		t.Errorf("it is %s", got)
	}
	c.Command("start", nil).Run().Fails(t, "paused")
	c.Command("resume", nil).Run().OK(t)
	if got := c.State().Status; got != "created" {
		t.Errorf("then it is %s", got)
	}
	c.Command("start", nil).Run().OK(t)
}

// A paused container takes nobody in, unless it is asked to; that one stands still too, until the
// container goes on.
func TestExecInPaused(t *testing.T) {
	b := harness.New(t)
	c := hanging(b)
	c.Command("pause", nil).Run().OK(t)
	if got := c.State().Status; got != "paused" {
		t.Errorf("status %s", got)
	}
	c.Exec(nil, "/bin/true").FailsWith(t, 255, "paused")
	running := c.Command("exec", []string{"--ignore-paused"}, "/bin/echo", "late").Start()
	c.Command("resume", nil).Run().OK(t)
	if out := running.Wait().OK(t).Stdout; out != "late\n" {
		t.Errorf("it said %q", out)
	}
	if got := c.State().Status; got != "running" {
		t.Errorf("status %s", got)
	}
	c.Command("resume", nil).Run().Fails(t, "not paused")
}

// A number that has no entry changes the user alone, and a box says the same of it.
func TestUserWithoutAnEntry(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	c.Spec.Process.User = specs.User{UID: 5, GID: 66, AdditionalGids: []uint32{77}}
	c.RunDetached()
	v := lookBy(c, "--user", "4242")
	if v.Status["Uid"] != "4242 4242 4242 4242" || v.Status["Gid"] != "66 66 66 66" || v.Status["Groups"] != "77" {
		t.Errorf("uid %s, gid %s, groups %s", v.Status["Uid"], v.Status["Gid"], v.Status["Groups"])
	}
	c.Delete("--force")
	out := b.Berth("box", "--user", "4242", "--", "/bin/sh", "-c", "id -u; id -g").OK(t).Stdout
	if want := fmt.Sprintf("4242\n%d\n", os.Getgid()); out != want {
		t.Errorf("a box: %q, want %q", out, want)
	}
}

// What is added by --cap is ambient where the config has it inheritable: one who is not
// root has it then. Where it has not, it stays out of both.
func TestExecCapOfAUser(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	c.Spec.Process.Capabilities.Inheritable = []string{"CAP_KILL"}
	c.RunDetached()
	v := lookBy(c, "--user", "1000", "--cap", "CAP_KILL", "--cap", "CAP_SYS_TIME")
	for set, want := range map[string][]string{"Amb": {"CAP_KILL"}, "Eff": {"CAP_KILL"}, "Prm": {"CAP_KILL"}, "Inh": {"CAP_KILL"}} {
		wantCaps(t, v, set, want...)
	}
	if bounding := harness.Caps(t, v, "Bnd"); !slices.Contains(bounding, "CAP_SYS_TIME") {
		t.Errorf("bounding set: %v", bounding)
	}
	c.Delete("--force")
}
