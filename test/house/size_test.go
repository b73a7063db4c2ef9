package house

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// mostLines is how long a file may be: what is longer has more than one subject, or can
// have a part of it told by a name of its own.
const mostLines = 400

// generated is the line that go generate asks for.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func TestFilesAreShort(t *testing.T) {
	files := 0
	err := filepath.WalkDir(top(t), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".s":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		if lines := bytes.Count(text, []byte("\n")); lines > mostLines && !generated.Match(text) {
			t.Errorf("%s has %d lines, more than %d: split it by subject", path, lines, mostLines)
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Errorf("%d files were looked at, %v", files, err)
	}
}
