package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The page, the picture and the data of what was measured say the same: none is edited by hand, and
// a change of how they are drawn draws them anew.
func TestDocsAgree(t *testing.T) {
	const docs = "../../docs"
	r, err := readReport(docs)
	if err != nil {
		t.Fatal(err)
	}
	made := t.TempDir()
	files := []string{"performance.md", "performance.svg", "performance.json"}
	were := map[string]string{}
	for _, name := range files {
		text, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Fatal(err)
		}
		were[name] = string(text)
	}
	if err := os.WriteFile(filepath.Join(made, files[0]), []byte(were[files[0]]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.writeDocs(made); err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if text, err := os.ReadFile(filepath.Join(made, name)); err != nil || string(text) != were[name] {
			t.Errorf("docs/%s is not what docs/performance.json makes (%v)", name, err)
		}
	}
}
