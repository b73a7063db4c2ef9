package container

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/atomicfile"
)

// folder makes a container's folder by hand.
func folder(t *testing.T, r *Runtime, id string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(r.Root, id)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// markRoot makes the root one that only we use.
func markRoot(t *testing.T, r *Runtime) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(r.Root, rootMark), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func record(id string, pid int, start uint64) string {
	r := Record{ID: id, Pid: pid, StartTime: start}
	return string(r.encode())
}

func collected(t *testing.T, r *Runtime, dry bool) []string {
	t.Helper()
	var ids []string
	if err := r.CollectGarbage(dry, func(l *Leftover) { ids = append(ids, l.ID) }); err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestCollectGarbage(t *testing.T) {
	r := &Runtime{Root: t.TempDir(), Warn: func(m string) { t.Errorf("warning: %s", m) }}
	markRoot(t, r)
	self, err := statOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	alive := record("alive", os.Getpid(), self.Start)
	folder(t, r, "empty", nil)
	folder(t, r, "making", map[string]string{configFile: "{}", recordFile: record("making", 0, 0), gateFile: ""})
	folder(t, r, "half-written", map[string]string{configFile: "{}", atomicfile.Temporary(recordFile): "{"})
	folder(t, r, "deleting", map[string]string{recordFile: record("deleting", 1<<22, 1)})
	folder(t, r, "alive", map[string]string{configFile: "{}", recordFile: alive, gateFile: "", poststartFile: "", atomicfile.Temporary(configFile): "{"})
	folder(t, r, "stopped", map[string]string{configFile: "{}", recordFile: record("stopped", 1<<22, 1)})
	folder(t, r, "whole", map[string]string{configFile: "{}", recordFile: alive})
	folder(t, r, "busy", map[string]string{recordFile: record("busy", 0, 0)})
	// An empty id of a folder that is no container's.
	folder(t, r, "not a container", nil)
	if err := os.WriteFile(filepath.Join(r.Root, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	lock, err := os.Open(filepath.Join(r.Root, "busy"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}

	want := []string{"alive", "deleting", "empty", "half-written", "making"}
	before := tree(t, r.Root)
	if got := collected(t, r, true); !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if after := tree(t, r.Root); !slices.Equal(before, after) {
		t.Errorf("finding changed\n%q\nto\n%q", before, after)
	}
	if got := collected(t, r, false); !slices.Equal(got, want) {
		t.Errorf("collected %q, want %q", got, want)
	}
	left := []string{"alive", "alive/config.json", "alive/state.json", rootMark, "busy", "busy/state.json", "file", "not a container",
		"stopped", "stopped/config.json", "stopped/state.json", "whole", "whole/config.json", "whole/state.json"}
	if got := tree(t, r.Root); !slices.Equal(got, left) {
		t.Errorf("left\n%q, want\n%q", got, left)
	}
	if got := collected(t, r, false); got != nil {
		t.Errorf("a second time: %q", got)
	}
}

func tree(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if path != root {
			name, _ := filepath.Rel(root, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A record that can't be read is no kill's doing: it is told and left.
func TestCollectGarbageLeavesTheUnknown(t *testing.T) {
	r := &Runtime{Root: t.TempDir()}
	markRoot(t, r)
	folder(t, r, "odd", map[string]string{recordFile: "no record"})
	folder(t, r, "zlast", nil)
	var ids []string
	if err := r.CollectGarbage(false, func(l *Leftover) { ids = append(ids, l.ID) }); err == nil {
		t.Error("nothing is said of the record")
	}
	if !slices.Equal(ids, []string{"zlast"}) {
		t.Errorf("collected %q", ids)
	}
	if _, err := os.Stat(filepath.Join(r.Root, "odd", recordFile)); err != nil {
		t.Error(err)
	}
}

// In a directory that others use too, only what a record of ours names is a container's; in one of
// ours, only what we put there.
func TestCollectGarbageLeavesTheForeign(t *testing.T) {
	for _, ours := range []bool{false, true} {
		r := &Runtime{Root: t.TempDir()}
		if ours {
			markRoot(t, r)
		}
		another := `{"id":"runc","init_process_pid":0,"created":"2026-01-02T03:04:05Z"}`
		folder(t, r, "project", map[string]string{configFile: "{}", "main.c": ""})
		folder(t, r, "runc", map[string]string{recordFile: another})
		folder(t, r, "moved", map[string]string{recordFile: record("elsewhere", 0, 0)})
		if !ours {
			folder(t, r, "empty", nil)
			folder(t, r, "config", map[string]string{configFile: "{}"})
		}
		folder(t, r, "making", map[string]string{recordFile: record("making", 0, 0)})
		before := slices.DeleteFunc(tree(t, r.Root), func(name string) bool { return filepath.Dir(name) == "making" || name == "making" })
		if got := collected(t, r, false); !slices.Equal(got, []string{"making"}) {
			t.Errorf("collected %q", got)
		}
		for _, id := range []string{"project", "runc", "moved", "empty", "config"} {
			c, err := r.LoadForDelete(id)
			if err != nil {
				continue
			}
			if err := c.Delete(true); err == nil {
				t.Errorf("delete --force %s is no error", id)
			}
			c.Close()
		}
		if after := tree(t, r.Root); !slices.Equal(before, after) {
			t.Errorf("left\n%q of\n%q", after, before)
		}
	}
}

func TestCollectGarbageWithoutRoot(t *testing.T) {
	r := &Runtime{Root: filepath.Join(t.TempDir(), "none")}
	if got := collected(t, r, false); got != nil {
		t.Errorf("%q", got)
	}
}

// Containers come and go without being taken for leftovers.
func TestClaimBesideGarbageCollection(t *testing.T) {
	r := &Runtime{Root: t.TempDir()}
	done, ended := make(chan struct{}), make(chan error)
	go func() {
		var err error
		for err == nil {
			select {
			case <-done:
				ended <- nil
				return
			default:
				err = r.CollectGarbage(false, func(l *Leftover) { t.Errorf("found %q: %s", l.ID, l.Why) })
			}
		}
		ended <- err
	}()
	for range 500 {
		c, err := r.claim("demo")
		if err != nil {
			t.Fatal(err)
		}
		if c.gone() {
			t.Fatal("the folder was taken away under its lock")
		}
		c.removeFolder()
		c.Close()
	}
	close(done)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
