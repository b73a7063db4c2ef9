package container

import (
	"os"
	"path/filepath"
	"testing"
)

// Directories stand for cgroups: both are removed by rmdir, when they are empty.
func TestLeftParents(t *testing.T) {
	r := &Runtime{Root: t.TempDir()}
	at := t.TempDir()
	dir := func(path string) string {
		full := filepath.Join(at, path)
		if err := os.MkdirAll(full, 0o755); err != nil {
			t.Fatal(err)
		}
		return full
	}
	there := func(path string) bool {
		_, err := os.Lstat(path)
		return err == nil
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	note := filepath.Join(r.Root, parentsFile)
	must(r.removeLeftParents()) // there are none
	other, pod := dir("top/pod/other"), filepath.Join(at, "top/pod")
	must(r.leaveParents([]string{pod, filepath.Dir(pod), filepath.Join(at, "gone")}))
	if !there(other) || !there(note) {
		t.Error("what others live in is removed, or not on record")
	}
	// One that went before the note was written is not waited for.
	must(r.leaveParents([]string{dir("empty")}))
	if there(filepath.Join(at, "empty")) || !there(note) {
		t.Error("an empty one stays")
	}
	// The note is written to a file of its own and put in its place: nothing else is left in the
	// root, and what others have made of a name in it is not written to.
	victim := filepath.Join(at, "victim")
	must(os.WriteFile(victim, []byte("kept"), 0o600))
	must(os.Symlink(victim, note+".new"))
	must(r.leaveParents([]string{dir("empty too")}))
	if text, err := os.ReadFile(victim); err != nil || string(text) != "kept" {
		t.Errorf("the file behind a link holds %q, %v", text, err)
	}
	if names, err := filepath.Glob(filepath.Join(r.Root, "*"+parentsFile+"*")); err != nil || len(names) != 2 {
		t.Errorf("%q, %v", names, err)
	}
	must(os.Remove(note + ".new"))
	must(os.Remove(other))
	must(r.removeLeftParents())
	if there(filepath.Join(at, "top")) || there(note) {
		t.Error("parents stay when the last one has gone, or their record does")
	}
	// Not ours: made anew where one of ours was.
	full := dir("again/full")
	again := filepath.Dir(full)
	must(r.leaveParents([]string{again}))
	must(os.Rename(again, again+".old"))
	dir("again")
	must(r.removeLeftParents())
	if !there(again) || there(note) {
		t.Error("a directory that is not ours is removed, or stays on record")
	}
	// A line that a killed command has not written to its end.
	must(os.WriteFile(note, []byte("12 "+again+"\n99"), 0o600))
	must(r.removeLeftParents())
	if !there(again) || there(note) {
		t.Error("half a line is not passed over")
	}
}
