package container

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a damaged directory is refused with says how to be rid of it.
func TestLoadOfWhatIsDamaged(t *testing.T) {
	for name, c := range map[string]struct{ text, says string }{
		"missing":   {"", "half-created"},
		"cut":       {`{"id": "a`, "line 1, column 8: a string without closing quote (berth delete --force"},
		"of a kind": {`{"id": 7}`, "/id: expected a string, found the number 7 (berth delete --force"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.Chmod(root, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(root, "a"), 0o700); err != nil {
				t.Fatal(err)
			}
			if c.text != "" {
				if err := os.WriteFile(filepath.Join(root, "a", recordFile), []byte(c.text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r := &Runtime{Root: root}
			_, err := r.Load("a")
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "berth delete --force") {
				t.Errorf("%v, want …%s…", err, c.says)
			}
		})
	}
}

func TestNoGroupSaysWhichContainer(t *testing.T) {
	c := &Container{runtime: &Runtime{}, Record: Record{ID: "a"}}
	if err := c.WithGroup(nil); err == nil || !strings.Contains(err.Error(), "container a has no cgroup") {
		t.Error(err)
	}
}
