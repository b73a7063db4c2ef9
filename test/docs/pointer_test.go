package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Messages name an entry of a configuration in one form, "FILE: /pointer: what is wrong", so that
// a search for one finds it.
func TestOneFormOfPointers(t *testing.T) {
	wrong := regexp.MustCompile("[\"`](config\\.json|process) (/|%s|%w|\" \\+)|[\"`]config\\.json: /linux/resources: %w|Errorf\\(\"/(process|linux|mounts|hooks|root)/")
	files := 0
	for _, dir := range []string{"cgroup", "cmd", "engine", "seccomp", "shim"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
				return err
			}
			text, err := os.ReadFile(path)
			files++
			for i, line := range strings.Split(string(text), "\n") {
				if m := wrong.FindString(line); m != "" {
					t.Errorf("%s:%d: %s… (config.json: /pointer: …)", path, i+1, m)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 100 {
		t.Errorf("only %d files were looked at", files)
	}
}
