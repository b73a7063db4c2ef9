package integration

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

func TestDeleteUnknown(t *testing.T) {
	b := harness.New(t)
	b.Berth("delete", "nobody").Fails(t, "container does not exist")
	b.Berth("delete", "--force", "nobody").OK(t)
	b.Berth("delete", "-f", "nobody").OK(t)
	for _, id := range []string{"../nobody", "a/b", "", "."} {
		b.Berth("delete", id).Fails(t)
	}
}

func TestDeleteRunning(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	c.Command("delete", nil).Run().Fails(t, c.ID)
	if s := c.State(); s.Status != "running" || s.Pid != c.PID {
		t.Errorf("the refused delete changed the container: %+v", s)
	}
	c.Delete("--force")
	if status := c.WaitExit(); status.Signal() != unix.SIGKILL {
		t.Errorf("ended with %v", status)
	}
	b.Berth("state", c.ID).Fails(t, "container does not exist")
}

func TestDeleteCreated(t *testing.T) {
	for _, flags := range [][]string{nil, {"--force"}} {
		b := harness.New(t)
		c := b.Container("/bin/true").Create()
		c.Delete(flags...)
		if status := c.WaitExit(); status.Signal() != unix.SIGKILL {
			t.Errorf("ended with %v", status)
		}
		b.Berth("state", c.ID).Fails(t, "container does not exist")
	}
}

// The first process is gone, but in a shared PID namespace others aren't: nothing of the container
// may outlive delete --force.
func TestDeleteForceEndsEveryProcess(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "sleep 100000 & sleep 100000 & echo ready; exec 1>&-; wait")
	harness.WithoutNamespace(c.Spec, "pid")
	out, w := b.Pipe()
	c.Stdout = w
	c.RunDetached()
	w.Close()
	out.Until("ready\n")
	c.Delete("--force")
	c.WaitExit()
	b.ReapOrphans()
}

// Processes of the container may have made cgroups of their own below the container's.
func TestDeleteRemovesCgroupsBelow(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	for _, dir := range b.Cgroups() {
		if filepath.Base(dir) != c.ID {
			continue
		}
		if err := os.MkdirAll(filepath.Join(dir, "below", "deeper"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.Delete("--force")
	c.WaitExit()
}

// What a crash may leave: a state directory without a state, or with half of one.
func TestDeleteForceOfHalfMadeStates(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
	}{
		{"empty folder", func(t *testing.T, dir string) {
			remake(t, dir)
		}},
		{"empty state", func(t *testing.T, dir string) {
			eachFile(t, dir, func(path string, _ []byte) []byte { return nil })
		}},
		{"half a state", func(t *testing.T, dir string) {
			eachFile(t, dir, func(_ string, data []byte) []byte { return data[:len(data)/2] })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true").RunDetached()
			c.WaitExit()
			// Its cgroup can't be known any more without a state, so that is taken away first.
			for _, dir := range b.Cgroups() {
				if err := unix.Rmdir(dir); err != nil {
					t.Fatal(err)
				}
			}
			test.spoil(t, filepath.Join(b.Root, c.ID))
			c.Delete("--force")
			c.Run().OK(t)
		})
	}
}

func remake(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
}

func eachFile(t *testing.T, dir string, change func(path string, data []byte) []byte) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, change(path, data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
