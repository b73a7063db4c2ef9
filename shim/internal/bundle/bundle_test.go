package bundle

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-runtime/berth/internal/atomicfile"
)

func TestReadConfig(t *testing.T) {
	for _, tc := range []struct {
		json string
		want Config
		bad  bool
	}{
		{`{}`, Config{SharedPid: true}, false},
		{`{"annotations":null,"linux":{"cgroupsPath":null,"namespaces":null}}`, Config{SharedPid: true}, false},
		{`{"linux":{"namespaces":[{"type":"mount"},{"type":"pid"}]}}`, Config{}, false},
		{`{"linux":{"namespaces":[{"path":"/proc/7/ns/pid","type":"pid"}]}}`, Config{SharedPid: true}, false},
		{`{"process":{"args":["a"]},"annotations":{"io.kubernetes.cri.sandbox-id":"s","x":"y"}}`, Config{Group: "s", SharedPid: true, HasProcess: true}, false},
		{`{"process":{"args":[],"cwd":"/"}}`, Config{SharedPid: true}, false},
		{`{"annotations":{"io.containerd.runc.v2.group":"g","io.kubernetes.cri.sandbox-id":"s"}}`, Config{Group: "g", SharedPid: true}, false},
		{`{"linux":{"cgroupsPath":"system.slice:docker:0e59","namespaces":[{"type":"pid"}]}}`, Config{NamesUnit: true}, false},
		{`{"linux":{"cgroupsPath":"/system.slice:docker:0e59"}}`, Config{SharedPid: true}, false},
		{`{"linux":{"cgroupsPath":"a/system.slice:docker:0e59"}}`, Config{SharedPid: true}, false},
		{`{"linux":{"cgroupsPath":"system.slice:docker:0e59:x"}}`, Config{SharedPid: true}, false},
		{`{"linux":{"cgroupsPath":"system.slice/docker"}}`, Config{SharedPid: true}, false},
		{`{"linux":{"cgroupsPath":":docker:0e59"}}`, Config{SharedPid: true}, false},
		{`{"annotations":{"io.kubernetes.cri.sandbox-id":7}}`, Config{}, true},
		{`{"linux":`, Config{}, true},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(tc.json), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadConfig(dir)
		if (err != nil) != tc.bad || err == nil && *got != tc.want {
			t.Errorf("%s: %+v, %v", tc.json, got, err)
		}
	}
	if _, err := ReadConfig(t.TempDir()); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestNotes(t *testing.T) {
	dir := t.TempDir()
	if m, err := Members(dir); len(m) != 0 || err != nil {
		t.Fatal(m, err)
	}
	for _, id := range []string{"a", "b", "c"} {
		if err := AddMember(dir, id, "/bundles/"+id); err != nil {
			t.Fatal(err)
		}
	}
	RemoveMember(dir, "b")
	if m, err := Members(dir); err != nil || len(m) != 2 || m["a"] != "/bundles/a" || m["c"] != "/bundles/c" {
		t.Fatal(m, err)
	}
	if _, ok := LoadEnd(dir); ok {
		t.Fatal("an end that was not noted")
	}
	want := End{Pid: 7, Status: 137, At: time.Unix(5, 6)}
	if err := SaveEnd(dir, want); err != nil {
		t.Fatal(err)
	}
	if got, ok := LoadEnd(dir); !ok || got != want {
		t.Fatal(got, ok)
	}
}

// A note that is not written, or that a kill has left half written, is none.
func TestUnfinishedNotes(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, members, "taken", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := AddMember(dir, "taken", "/bundles/taken"); err == nil {
		t.Error("a directory was replaced by a note")
	}
	for _, d := range []string{dir, filepath.Join(dir, members)} {
		if entries, err := os.ReadDir(d); err != nil || len(entries) != 1 {
			t.Errorf("%s has %v, %v", d, entries, err)
		}
	}
	if err := os.RemoveAll(filepath.Join(dir, members, "taken")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, atomicfile.Temporary(members+"/a")), []byte("/bund"), 0o600); err != nil {
		t.Fatal(err)
	}
	if m, err := Members(dir); len(m) != 0 || err != nil {
		t.Errorf("half a note is read as %v, %v", m, err)
	}
	if err := AddMember(dir, "a", "/bundles/a"); err != nil {
		t.Error(err)
	}
	if m, err := Members(dir); err != nil || len(m) != 1 || m["a"] != "/bundles/a" {
		t.Errorf("%v, %v", m, err)
	}
}
