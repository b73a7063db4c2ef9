package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

func TestCreateThenStart(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "echo started > /mark; exit 5")
	c.Create()
	s := c.State()
	if s.Status != "created" || s.Pid != c.PID || s.ID != c.ID {
		t.Errorf("after create: %+v, want created with pid %d", s, c.PID)
	}
	if _, err := os.Stat(c.Path("mark")); err == nil {
		t.Error("the process ran before start")
	}
	c.Start()
	if status := c.WaitExit(); status.ExitStatus() != 5 {
		t.Errorf("the process ended with %v, want 5", status)
	}
	if _, err := os.Stat(c.Path("mark")); err != nil {
		t.Error("the process did not run after start")
	}
	if s := c.State(); s.Status != "stopped" || s.Pid != 0 {
		t.Errorf("after its end: status %s, pid %d", s.Status, s.Pid)
	}
	c.Delete()
}

// Clients wait for the container's first process: create must leave it as a child of the caller's
// subreaper.
func TestCreatedProcessIsTheCallersChild(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true").Create()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(c.PID) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	if got := statusField(string(stat), "PPid"); got != strconv.Itoa(os.Getpid()) {
		t.Errorf("parent is %s, want this process, %d", got, os.Getpid())
	}
}

func TestStateShape(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Annotations = map[string]string{"org.example.key": "a value", "org.example.other": ""}
	before := time.Now()
	c.Create()
	out := c.Command("state", nil).Run().OK(t).Stdout
	var fields map[string]json.RawMessage
	harness.Decode(t, out, &fields)
	for _, name := range []string{"ociVersion", "id", "pid", "status", "bundle", "rootfs", "created", "owner", "annotations"} {
		if _, ok := fields[name]; !ok {
			t.Errorf("no field %s in %s", name, out)
		}
	}
	s := c.State()
	if s.Bundle != c.Dir || s.Rootfs != c.Rootfs() {
		t.Errorf("bundle %s, rootfs %s", s.Bundle, s.Rootfs)
	}
	if s.Version == "" || s.Version[0] != '1' {
		t.Errorf("ociVersion %q", s.Version)
	}
	if s.Annotations["org.example.key"] != "a value" || len(s.Annotations) != 2 {
		t.Errorf("annotations %v", s.Annotations)
	}
	created, err := time.Parse(time.RFC3339Nano, s.Created)
	if err != nil || created.Before(before.Add(-time.Second)) || created.After(time.Now().Add(time.Second)) {
		t.Errorf("created %q (%v)", s.Created, err)
	}
}

// A bundle given by a relative path is the same in state, wherever that is asked from.
func TestStateBundleIsAbsolute(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Write()
	cmd := b.Command("create", "--bundle", filepath.Base(c.Dir), "--pid-file", "a.pid", c.ID)
	cmd.Dir = b.Dir
	cmd.Run().OK(t)
	data, err := os.ReadFile(b.Path("a.pid"))
	if err != nil {
		t.Fatalf("a relative pid file is relative to the caller's folder: %v", err)
	}
	if c.PID, err = strconv.Atoi(string(data)); err != nil {
		t.Fatal(err)
	}
	if s := c.State(); s.Bundle != c.Dir {
		t.Errorf("bundle %s, want %s", s.Bundle, c.Dir)
	}
	c.Delete("--force")
	c.WaitExit()
}

func TestPIDFile(t *testing.T) {
	for _, verb := range []string{"create", "run"} {
		t.Run(verb, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/inside", "hang")
			// A file that is there already is replaced, not appended to.
			path := b.WriteFile(c.ID+".pid", "12345678901234567890\n", 0o600)
			if verb == "create" {
				c.Create()
			} else {
				c.RunDetached()
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if want := strconv.Itoa(c.State().Pid); string(data) != want {
				t.Errorf("pid file %q, want %q", data, want)
			}
			left, err := filepath.Glob(b.Path("*.pid*"))
			if dot, _ := filepath.Glob(b.Path(".*")); err != nil || len(left)+len(dot) != 1 {
				t.Errorf("besides the pid file: %v %v (%v)", left, dot, err)
			}
		})
	}
}

func TestPIDFileThatCannotBeWritten(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Command("create", []string{"--pid-file", b.Path("no/such/folder/pid")}).Run().Fails(t, "no such file or directory")
	b.Berth("state", c.ID).Fails(t, "container does not exist")
}

func TestStartRefusals(t *testing.T) {
	b := harness.New(t)
	b.Berth("start", "nobody").Fails(t, "container does not exist")

	running := b.Container("/inside", "hang").RunDetached()
	running.Command("start", nil).Run().Fails(t, "cannot start an already running container")
	running.Kill("KILL").WaitExit()
	running.Command("start", nil).Run().Fails(t, "cannot start a container that has stopped")
	running.Delete()
}

func TestCreatedContainerThatDiedIsStopped(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true").Create()
	c.Kill("KILL")
	if status := c.WaitExit(); !status.Signaled() {
		t.Errorf("ended with %v", status)
	}
	if s := c.State(); s.Status != "stopped" || s.Pid != 0 {
		t.Errorf("status %s, pid %d", s.Status, s.Pid)
	}
	c.Command("start", nil).Run().Fails(t, "cannot start a container that has stopped")
	c.Delete()
}

// The config may change, or go, after create: start uses what was read then, of which only hooks
// make it read anything.
func TestStartUsesTheConfigOfCreate(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "exit 4")
	h := hooked{Container: c, calls: b.WriteFile("calls", "", 0o666)}
	c.Spec.Hooks = &specs.Hooks{Poststart: []specs.Hook{h.record("poststart", "poststart-1")}}
	c.Create()
	c.WriteConfig("{broken")
	c.Start()
	if got := h.names(); len(got) != 1 || got[0] != "poststart-1" {
		t.Errorf("the hooks that have run are %q", got)
	}
	if status := c.WaitExit(); status.ExitStatus() != 4 {
		t.Errorf("ended with %v", status)
	}
	c.Delete()
}

// A container's process may end before start has returned: that is not start's failure.
func TestStartOfAShortProcess(t *testing.T) {
	b := harness.New(t)
	for range 5 {
		c := b.Container("/bin/true").Create().Start()
		c.WaitExit()
		c.Delete()
	}
}

func TestIDInUse(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").Create()
	other := b.Container("/bin/true")
	other.Write()
	b.Berth("create", "--bundle", other.Dir, c.ID).Fails(t, "already exists", c.ID)
	b.Berth("run", "--bundle", other.Dir, c.ID).Fails(t, "already exists", c.ID)
	if s := c.State(); s.Status != "created" || s.Pid != c.PID {
		t.Errorf("the refused create changed the container: %+v", s)
	}
}
