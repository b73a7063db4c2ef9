package record

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-runtime/berth/node/plan"
)

func TestRecord(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	r, err := Open(dir, "boot1")
	if err != nil {
		t.Fatal(err)
	}
	memory := Change{Kind: plan.SetProperty, Target: "system.slice", Name: "MemoryMax", Before: "infinity", Wrote: "1000", DropIn: &DropIn{Path: "/x"}}
	lasting := Change{Kind: plan.SetProperty, Target: "system.slice", Name: "CPUWeight", Before: "infinity", Wrote: "50", Persistent: true}
	score := Change{Kind: plan.SetScore, Target: "kubelet", Name: "pid 7", Before: "0", Wrote: "-999", PID: 7, Start: 100}
	for _, c := range []Change{memory, lasting, score} {
		if err := r.Intend(c); err != nil {
			t.Fatal(err)
		}
	}
	// A second change keeps what was before the first.
	again := memory
	again.Before, again.Wrote, again.DropIn = "1000", "2000", &DropIn{Path: "/x", Existed: true}
	if err := r.Intend(again); err != nil {
		t.Fatal(err)
	}
	// Another process with the pid of an earlier one is another thing.
	other := score
	other.Before, other.Start = "-5", 200
	if err := r.Intend(other); err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if _, err := Open(dir, "boot1"); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("a second one: %v", err)
	}
	r.Close()
	if r, err = Open(dir, "boot1"); err != nil {
		t.Fatal(err)
	}
	if c := r.Find("property system.slice MemoryMax"); c == nil || c.Before != "infinity" || c.Wrote != "2000" || c.DropIn.Existed {
		t.Errorf("%+v", c)
	}
	if c := r.Find("oom-score kubelet pid 7"); c == nil || c.Before != "-5" {
		t.Errorf("%+v", c)
	}
	if err := r.Drop("oom-score kubelet pid 7"); err != nil || len(r.Changes) != 2 {
		t.Errorf("%v, %v", r.Changes, err)
	}
	r.Close()
	// After a boot, what was until then is gone with it.
	if r, err = Open(dir, "boot2"); err != nil || len(r.Changes) != 1 || r.Changes[0].Name != "CPUWeight" {
		t.Errorf("%v, %v", r, err)
	}
	r.Close()
}

func TestBrokenRecord(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "record.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, "b"); err == nil {
		t.Error("half a record was taken")
	}
	// The lock was given back.
	if err := os.Remove(filepath.Join(dir, "record.json")); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir, "b")
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
}

// When all is undone nothing is left of the record; what is on record stays.
func TestClear(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	r, err := Open(dir, "boot")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Intend(Change{Kind: plan.SetParameter, Target: "kernel.panic", Before: "0", Wrote: "10"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Clear(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "record.json")); err != nil {
		t.Error("a record that is not empty was removed: ", err)
	}
	if err := r.Drop("parameter kernel.panic"); err != nil {
		t.Fatal(err)
	}
	if err := r.Clear(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory: %v", err)
	}
	// The next one has a lock of its own, though the former is not closed yet.
	next, err := Open(dir, "boot")
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	r.Close()
	var locked *LockedError
	if _, err := Open(dir, "boot"); !errors.As(err, &locked) {
		t.Errorf("a second one: %v", err)
	}
}
