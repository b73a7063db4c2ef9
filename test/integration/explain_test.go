package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// explain needs no root and touches nothing: with a bundle any user can see what would be done with
// it.
func TestExplain(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Process.User.UID = 1234
	c.Spec.Linux.CgroupsPath = "/not/made"
	c.Write()
	engine := publicCopy(t, b)
	for _, args := range [][]string{{"explain", "--program", c.Dir}, {"explain", "--json", c.Dir}} {
		cmd := b.Command(args...)
		cmd.Bare, cmd.Binary, cmd.Dir = true, engine, c.Dir
		cmd.Attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
		r := cmd.Run().OK(t)
		for _, word := range []string{"/mounts/0", "/linux/maskedPaths/", "/process/user", "1234", "execve", "/not/made", "pivot_root", "MOUNT_ATTR_NOSUID|MOUNT_ATTR_NODEV"} {
			if !strings.Contains(r.Stdout, word) {
				t.Errorf("%v does not say %q", args, word)
			}
		}
		if args[1] == "--json" && !json.Valid([]byte(r.Stdout)) {
			t.Errorf("not JSON: %.200s", r.Stdout)
		}
	}
	if _, err := os.Stat(b.Root); err == nil {
		t.Error("explain made the state root")
	}
}

// By default it is what fits on a screen, and says all that makes the container differ from others.
func TestExplainIsBrief(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Process.Env = append(c.Spec.Process.Env, "TOKEN=secret")
	limit := int64(77)
	c.Spec.Linux.Resources = &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &limit}}
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/srv", Type: "bind", Source: b.Dir, Options: []string{"rbind", "ro"}})
	c.Write()
	r := b.Berth("explain", c.Dir).OK(t)
	if lines := strings.Count(r.Stdout, "\n"); lines > 40 {
		t.Errorf("%d lines:\n%s", lines, r.Stdout)
	}
	for _, word := range []string{`"77" to pids.max`, "bind " + b.Dir + " on /srv", `execute "/bin/true"`, "TOKEN", "hide /proc/acpi", " system calls"} {
		if !strings.Contains(r.Stdout, word) {
			t.Errorf("it does not say %q:\n%s", word, r.Stdout)
		}
	}
	if strings.Contains(r.Stdout, "secret") {
		t.Errorf("it has the value of a variable:\n%s", r.Stdout)
	}
}

func TestExplainOfABrokenConfig(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Process.Cwd = "relative"
	c.Write()
	b.Berth("explain", c.Dir).Fails(t, "/process/cwd")
	b.Berth("explain", b.Path("nowhere")).Fails(t, "no such file or directory")
}

// publicCopy puts the engine where an ordinary user may execute it.
func publicCopy(t *testing.T, b *harness.Box) string {
	t.Helper()
	data, err := os.ReadFile(harness.Engine(t))
	if err != nil {
		t.Fatal(err)
	}
	return b.WriteFile(filepath.Base(harness.Engine(t)), string(data), 0o755)
}
