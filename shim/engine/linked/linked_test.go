package linked

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/settings"
	"github.com/berth-runtime/berth/shim/engine"
)

// sleeper is a bundle whose container sleeps in a pid namespace of its own.
func sleeper(t *testing.T) (bundle string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers of a shim need root")
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("busybox is not installed")
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		t.Fatal(err)
	}
	bundle = t.TempDir()
	if err := os.MkdirAll(filepath.Join(bundle, "rootfs/proc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bundle, "rootfs/sleep"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	spec, err := json.Marshal(&specs.Spec{
		Version: "1.2.0", Root: &specs.Root{Path: "rootfs"},
		Process: &specs.Process{Cwd: "/", Args: []string{"/sleep", "1000"}, NoNewPrivileges: true},
		Mounts:  []specs.Mount{{Destination: "/proc", Type: "proc", Source: "proc"}},
		Linux: &specs.Linux{
			CgroupsPath: "/" + filepath.Base(filepath.Dir(bundle)),
			Namespaces:  []specs.LinuxNamespace{{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), spec, 0o600); err != nil {
		t.Fatal(err)
	}
	return bundle
}

func reap(t *testing.T, pid int) {
	t.Helper()
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
			if err != nil {
				t.Errorf("wait for %d: %v", pid, err)
			}
			return
		}
	}
}

// The first process of a pid namespace ends after those that were added to it
// have been reaped. Where nobody does that, a removal must not wait for ever, and
// must be possible when it has been done.
func TestRemoveDoesNotWaitForEver(t *testing.T) {
	bundle, ctx := sleeper(t), t.Context()
	e := New(t.TempDir(), settings.Settings{}, func(text string) { t.Log(text) })
	c, init, err := e.Create(ctx, &engine.Create{ID: "c", Bundle: bundle})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	added, err := c.Exec(ctx, &engine.Exec{ID: "e", Process: []byte(`{"cwd": "/", "args": ["/sleep", "1000"]}`), PidFile: filepath.Join(bundle, "e.pid")})
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if err := e.Remove(short, "c"); err == nil || !strings.Contains(err.Error(), "does not end") {
		t.Errorf("removal while a process is not reaped: %v", err)
	}
	reap(t, added.Pid)
	reap(t, init.Pid)
	if err := e.Remove(ctx, "c"); err != nil {
		t.Errorf("removal when all are reaped: %v", err)
	}
	if err := e.Remove(ctx, "c"); err != nil {
		t.Errorf("removal of what is gone: %v", err)
	}
}
