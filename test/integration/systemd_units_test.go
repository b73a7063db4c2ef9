package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

func TestUnitPlacement(t *testing.T) {
	b := withSystemd(t)
	for _, c := range []struct{ name, path, unit, slice string }{
		{"slice, prefix and name", "berthtest-sub.slice:pre:%s", "pre-%s.scope", "berthtest-sub.slice"},
		{"root slice", "-:pre:%s", "pre-%s.scope", "-.slice"},
		{"no prefix", "berthtest.slice::%s", "-%s.scope", "berthtest.slice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if os.Geteuid() != 0 && c.slice == "-.slice" && !onV2(t) {
				harness.Skip(t, "needs cgroup v2")
			}
			box, _ := unitContainer(b, "/inside", "hang")
			box.Spec.Linux.CgroupsPath = fmt.Sprintf(c.path, box.ID)
			unit := fmt.Sprintf(c.unit, box.ID)
			box.RunDetached()
			out := systemctl(t, "show", "--value", "-p", "Slice", "--", unit)
			if out != c.slice {
				t.Errorf("slice %q, want %q", out, c.slice)
			}
			// The same path in all hierarchies, in those too that systemd does not look after. On
			// v1 an ordinary user has but systemd's own.
			at := systemctl(t, "show", "--value", "-p", "ControlGroup", "--", unit)
			for line := range strings.Lines(readFile(t, procPath(box.PID, "cgroup"))) {
				if systemds := strings.HasPrefix(line, "0::") || strings.Contains(line, ":name=systemd:"); os.Geteuid() != 0 && !systemds {
					continue
				}
				if !strings.HasSuffix(line, ":"+at+"\n") {
					t.Errorf("the process is in %s", line)
				}
			}
			box.Kill("KILL").WaitExit()
			box.Delete()
		})
	}
	for _, path := range []string{"/absolute", "a/b.slice:x:y", "a:b", "--.slice:x:y", "no-suffix:x:y"} {
		c, _ := unitContainer(b, "/bin/true")
		c.Spec.Linux.CgroupsPath = path
		if r := c.Run(); r.Code == 0 || !strings.Contains(r.Stderr, "/linux/cgroupsPath") {
			t.Errorf("cgroupsPath %s: %d %s", path, r.Code, r.Stderr)
		}
	}
}

// A name with .slice makes a slice; the processes are in a cgroup inside of it.
func TestUnitSlice(t *testing.T) {
	b := systemdAsRoot(t)
	c, _ := unitContainer(b, "/inside", "hang")
	unit := "berthtest-" + strings.ReplaceAll(c.ID, "-", "_") + ".slice"
	c.Spec.Linux.CgroupsPath = "berthtest.slice::" + unit
	c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: ptr(int64(70))}
	c.RunDetached()
	if got := property(t, unit, "TasksMax"); got != "70" {
		t.Errorf("TasksMax is %s", got)
	}
	if got := unitFile(t, unit, "pids", "pids.max", "pids.max"); got != "70" {
		t.Errorf("pids.max is %s", got)
	}
	if got := property(t, unit, "Wants"); got != "berthtest.slice" {
		t.Errorf("it wants %q", got)
	}
	own := readFile(t, procPath(c.PID, "cgroup"))
	if want := property(t, unit, "ControlGroup") + "/payload\n"; !strings.Contains(own, want) {
		t.Errorf("the process is in %s, not in %s", own, want)
	}
	c.Exec(nil, "/bin/true").OK(t)
	c.Kill("KILL").WaitExit()
	c.Delete()
	if got := property(t, unit, "ActiveState"); got == "active" {
		t.Error("the slice is still there")
	}
}

func TestUnitAnnotations(t *testing.T) {
	b := withSystemd(t)
	c, unit := unitContainer(b, "/inside", "hang")
	c.Spec.Annotations = map[string]string{
		"org.systemd.property.TimeoutStopUSec": "uint64 123456789",
		"org.systemd.property.RuntimeMaxSec":   "600",
		"org.systemd.property.CollectMode":     "'inactive-or-failed'",
		"org.systemd.property.TasksMax":        "uint64 55",
		"org.systemd.property.Description":     "'a name of its own'",
	}
	c.RunDetached()
	for name, want := range map[string]string{
		"TimeoutStopUSec": "2min 3.456789s", "RuntimeMaxUSec": "10min", "CollectMode": "inactive-or-failed", "TasksMax": "55",
		"Description": "a name of its own",
	} {
		if got := property(t, unit, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	c.Kill("KILL").WaitExit()
	c.Delete()
	for text, want := range map[string]string{
		"'unfinished": "column",                           // no gvariant text
		"5":           "org.systemd.property.CollectMode", // of another type than systemd wants
		"'nonsense'":  "CollectMode",
	} {
		c, _ := unitContainer(b, "/bin/true")
		c.Spec.Annotations = map[string]string{"org.systemd.property.CollectMode": text}
		if r := c.Run(); r.Code == 0 || !strings.Contains(r.Stderr, want) || !strings.Contains(r.Stderr, "org.systemd.property.CollectMode") {
			t.Errorf("%s: %d %s", text, r.Code, r.Stderr)
		}
	}
	c, _ = unitContainer(b, "/bin/true")
	c.Spec.Annotations = map[string]string{"org.systemd.property.NoSuchThing": "true"}
	if r := c.Run(); r.Code == 0 || !strings.Contains(r.Stderr, "org.systemd.property.NoSuchThing") {
		t.Errorf("unknown property: %d %s", r.Code, r.Stderr)
	}
}

// What is left of a unit is cleared away; one that lives is named in the error, and nothing happens
// to it.
func TestUnitInTheWay(t *testing.T) {
	b := withSystemd(t)
	run := harness.NeedTool(t, "systemd-run", "systemd")
	user := []string{}
	if os.Geteuid() != 0 {
		user = []string{"--user"}
	}
	c, unit := unitContainer(b, "/bin/true")
	args := append(user, "--scope", "--unit="+unit, "-p", "RuntimeMaxSec=1s", "sleep", "60")
	_ = exec.Command(run, args...).Run() // ended by systemd, which leaves a unit that failed
	got := ""
	wait.Until(t, "systemd has seen the scope's end", func() bool {
		got = property(t, unit, "ActiveState")
		return got != "active" && got != "deactivating"
	})
	if got != "failed" {
		harness.Skip(t, "needs a scope that fails: this one is %s", got)
	}
	c.Run().OK(t)
	gone(t, unit)

	d, unit := unitContainer(b, "/inside", "hang")
	d.RunDetached()
	e, _ := unitContainer(b, "/bin/true")
	e.Spec.Linux.CgroupsPath = property(t, unit, "Slice") + ":berth:" + d.ID
	if r := e.Run(); r.Code == 0 || !strings.Contains(r.Stderr, unit) || !strings.Contains(r.Stderr, "is in use by") {
		t.Errorf("two containers in one unit: %d %s", r.Code, r.Stderr)
	}
	if got := d.State().Status; got != "running" {
		t.Errorf("the first container is %s", got)
	}
}

// systemd freezes the unit, and knows that it did; the rest of the engine sees it as paused.
func TestUnitPause(t *testing.T) {
	b := withSystemd(t)
	if os.Geteuid() != 0 {
		needV2(t)
	}
	c, unit := unitContainer(b, "/inside", "hang")
	c.RunDetached()
	c.Command("pause", nil).Run().OK(t)
	if got := c.State().Status; got != "paused" {
		t.Errorf("status %s", got)
	}
	if got := property(t, unit, "FreezerState"); onV2(t) && got != "frozen" {
		t.Errorf("systemd says %s", got)
	}
	systemctl(t, "daemon-reload")
	if got := c.State().Status; got != "paused" {
		t.Errorf("status after a reload %s", got)
	}
	c.Command("resume", nil).Run().OK(t)
	if got := c.State().Status; got != "running" {
		t.Errorf("status %s", got)
	}
	if got := property(t, unit, "FreezerState"); got != "running" {
		t.Errorf("systemd says %s", got)
	}
	c.Command("pause", nil).Run().OK(t)
	c.Delete("--force")
	c.WaitExit()
	gone(t, unit)
}

func TestUnitStatsAndExec(t *testing.T) {
	b := withSystemd(t)
	if os.Geteuid() != 0 {
		needV2(t)
	}
	c, unit := unitContainer(b, "/inside", "hang")
	c.RunDetached()
	path := strings.TrimSpace(property(t, unit, "ControlGroup"))
	if !strings.Contains(readFile(t, procPath(c.PID, "cgroup")), ":"+path+"\n") {
		t.Errorf("the process is not in %s", path)
	}
	c.Exec([]string{"--detach", "--pid-file", b.Path("exec.pid")}, "/inside", "hang").OK(t)
	pid, err := strconv.Atoi(readFile(t, b.Path("exec.pid")))
	if err != nil {
		t.Fatal(err)
	}
	if a, b := readFile(t, procPath(c.PID, "cgroup")), readFile(t, procPath(pid, "cgroup")); a != b {
		t.Errorf("the added process is in %s, the first in %s", b, a)
	}
	if r := c.Command("events", []string{"--stats"}).Run().OK(t); !strings.Contains(r.Stdout, `"pids":{"current":`) {
		t.Errorf("stats: %s", r.Stdout)
	}
	// It is this process's child, and the pid namespace ends only when it was waited for.
	if p, err := os.FindProcess(pid); err != nil || p.Kill() != nil {
		t.Errorf("end the added process: %v", err)
	} else if _, err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// As many at once as a node that starts up has: none may fail for lack of a connection, and none
// leaves its unit.
func TestUnitsAtOnce(t *testing.T) {
	b := withSystemd(t)
	n := 60
	if testing.Short() {
		n = 12
	}
	containers := make([]*harness.Container, n)
	for i := range containers {
		containers[i], _ = unitContainer(b, "/inside", "hang")
		containers[i].Write()
	}
	each := func(call func(c *harness.Container) *harness.Command) {
		t.Helper()
		running := make([]*harness.Running, n)
		for i, c := range containers {
			running[i] = call(c).Start()
		}
		for i, r := range running {
			if result := r.Wait(); result.Code != 0 {
				t.Errorf("%d: %s", i, result.Stderr)
			}
		}
	}
	each(func(c *harness.Container) *harness.Command {
		return c.Command("run", []string{"--detach", "--pid-file", b.Path(c.ID + ".pid")})
	})
	for _, c := range containers {
		pid, err := strconv.Atoi(readFile(t, b.Path(c.ID+".pid")))
		if err != nil {
			t.Fatal(err)
		}
		c.PID = pid
	}
	if got := len(runningUnits(t, b)); got != n {
		t.Errorf("%d units run, of %d", got, n)
	}
	each(func(c *harness.Container) *harness.Command { return c.Command("kill", nil, "KILL") })
	for _, c := range containers {
		c.WaitExit()
	}
	each(func(c *harness.Container) *harness.Command { return c.Command("delete", nil) })
	unitsGone(t, b)
}

// Only what changes a unit talks to systemd: a node has many of the other calls, and buses are
// slow.
func TestUnitAsksNobody(t *testing.T) {
	b := withSystemd(t)
	strace := harness.NeedTool(t, "strace", "strace")
	connects := func(cmd *harness.Command) (harness.Result, bool) {
		t.Helper()
		trace := b.Path("trace")
		cmd.Wrap = []string{strace, "--seccomp-bpf", "-f", "-qq", "-o", trace, "-e", "trace=connect"}
		r := cmd.Run()
		return r, strings.Contains(readFile(t, trace), "connect(")
	}
	quiet := func(cmd *harness.Command) harness.Result {
		t.Helper()
		r, talked := connects(cmd)
		if talked {
			t.Errorf("%q talked to a bus", cmd.Args)
		}
		return r
	}
	c, _ := unitContainer(b, "/inside", "hang")
	c.RunDetached()
	quiet(c.Command("state", nil)).OK(t)
	quiet(b.Command("list")).OK(t)
	quiet(c.Command("kill", nil, "KILL")).OK(t)
	c.WaitExit()
	quiet(c.Command("state", nil)).OK(t)
	quiet(b.Command("list")).OK(t)
	quiet(c.Command("kill", nil, "TERM")).Fails(t, "not running")
	if r, talked := connects(c.Command("delete", nil)); r.Code != 0 || !talked {
		t.Errorf("delete: %d %s, talked %t", r.Code, r.Stderr, talked)
	}
}

// Without systemd there is one clear error, and nothing is left.
func TestNoSystemd(t *testing.T) {
	if _, err := os.Stat("/run/systemd/system"); err == nil && os.Geteuid() == 0 {
		harness.Skip(t, "needs a machine without systemd: root reaches it by its own socket")
	}
	b := harness.NewForAnyone(t)
	b.Globals = append(b.Globals, "--systemd-cgroup")
	c, _ := unitContainer(b, "/bin/true")
	c.Env = []string{"DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent/bus", "XDG_RUNTIME_DIR=/nonexistent", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/nonexistent/bus"}
	r := c.Run()
	if r.Code != 1 || strings.Count(r.Stderr, "level=error") != 1 || !strings.Contains(r.Stderr, "connect to systemd") {
		t.Errorf("%d: %s", r.Code, r.Stderr)
	}
}

func TestMachined(t *testing.T) {
	b := systemdAsRoot(t)
	machinectl := harness.NeedTool(t, "machinectl", "systemd-container")
	c, _ := unitContainer(b, "/inside", "hang")
	c.Spec.Annotations = map[string]string{"run.berth.machined": "true"}
	c.Spec.Process.Env = append(c.Spec.Process.Env, "container_uuid=0123456789abcdef0123456789abcdef")
	c.RunDetached()
	out, err := exec.Command(machinectl, "show", c.ID, "-p", "Leader", "-p", "Id", "-p", "Class", "-p", "Unit").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{fmt.Sprintf("Leader=%d", c.PID), "Id=0123456789abcdef0123456789abcdef", "Class=container", "Unit=berth-" + c.ID + ".scope"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	c.Kill("KILL").WaitExit()
	c.Delete()
	wait.Until(t, "machined does not know it any more", func() bool { return exec.Command(machinectl, "show", c.ID).Run() != nil })
	d, _ := unitContainer(b, "/bin/true")
	d.Spec.Annotations = map[string]string{"run.berth.machined": "perhaps"}
	if r := d.Run(); r.Code == 0 || !strings.Contains(r.Stderr, "/annotations/run.berth.machined") {
		t.Errorf("%d %s", r.Code, r.Stderr)
	}
}

// A service with Type=notify is up when the container says so. Its main process is then the
// container's, unless the engine stays to wait for that.
func TestNotifySocket(t *testing.T) {
	b := systemdAsRoot(t)
	first := []string{"STATUS=almost", "READY=1\nMAINPID=1"}
	for _, way := range []struct {
		name, script string
		words        []string
	}{
		// In the foreground messages are passed on until the end, else until it is ready.
		{"run", `exec "$@" run --bundle "$BUNDLE" "$ID"`, append(first, "STATUS=well\nMAINPID=1")},
		{"run detached", `exec "$@" run --detach --bundle "$BUNDLE" "$ID"`, first},
		{"create and start", `"$@" create --bundle "$BUNDLE" "$ID" && exec "$@" start "$ID"`, first},
	} {
		t.Run(way.name, func(t *testing.T) {
			c, _ := unitContainer(b, append([]string{"/inside", "notify"}, way.words...)...)
			c.Command("state", nil) // to have it deleted at the end
			c.Write()
			service := strings.ReplaceAll(c.ID, "-", "_") + ".service"
			args := []string{"--service-type=notify", "--unit=" + service, "-p", "NotifyAccess=main", "-p", "TimeoutStartSec=60",
				"-p", "KillMode=process", "--setenv=TMPDIR=" + b.Dir, "--setenv=BUNDLE=" + c.Dir, "--setenv=ID=" + c.ID,
				"--", "/bin/sh", "-c", way.script, "sh", harness.Engine(t)}
			out, err := exec.Command("systemd-run", append(args, b.Globals...)...).CombinedOutput()
			if err != nil {
				status, _ := trySystemctl("status", service)
				t.Fatalf("%v: %s\n%s", err, out, status)
			}
			if got := property(t, service, "ActiveState"); got != "active" {
				t.Errorf("the service is %s", got)
			}
			main, pid := property(t, service, "MainPID"), strconv.Itoa(c.State().Pid)
			if way.name != "run" && main != pid {
				t.Errorf("MainPID is %s, want %s", main, pid)
			}
			if way.name == "run" {
				if main == "0" || main == pid {
					t.Errorf("MainPID is %s, and not the engine's", main)
				}
				wait.Until(t, "systemd has the status", func() bool { return property(t, service, "StatusText") == "well" })
			}
			c.Command("delete", []string{"--force"}).Run().OK(t)
			_, _ = trySystemctl("stop", service)
			_, _ = trySystemctl("reset-failed", service)
			if left, _ := filepath.Glob(b.Root + "/" + b.Tag + "*"); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}
