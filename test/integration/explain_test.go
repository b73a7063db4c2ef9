package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// explain needs no root and touches nothing: whoever has a bundle can see what would be done with
// it.
func TestExplain(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Process.User.UID = 1234
	c.Spec.Linux.CgroupsPath = "/not/made"
	c.Write()
	engine := publicCopy(t, b)
	for _, args := range [][]string{{"explain", c.Dir}, {"explain", "--json", c.Dir}} {
		cmd := b.Command(args...)
		cmd.Bare, cmd.Binary, cmd.Dir = true, engine, c.Dir
		cmd.Attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
		r := cmd.Run().OK(t)
		for _, word := range []string{"/mounts/0", "/linux/maskedPaths/", "/process/user", "1234", "execve", "/not/made", "pivot_root"} {
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
