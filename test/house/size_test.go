package house

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// mostLines is how long a file may be: what is longer has more than one subject, or can
// have a part of it told by a name of its own.
const mostLines = 400

// widest is how many columns a comment has, with four for a tab, so that two files stand side by
// side on a screen.
const widest = 100

// prose is a line of a comment that could be broken: not one word, not laid out (tables, expected
// output, commands), not a directive of a tool.
var prose = regexp.MustCompile(`^\t*// (  - |    )?[^\s/][^ ]*( [^ ]+)+$`)

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
		if !generated.Match(text) {
			checkComments(t, path, text)
		}
		if lines := bytes.Count(text, []byte("\n")); lines > mostLines && !generated.Match(text) {
			t.Errorf("%s has %d lines, more than %d: split it by subject", path, lines, mostLines)
		}
		return nil
	})
	if err != nil || files < 500 {
		t.Errorf("%d files were looked at, %v", files, err)
	}
}

func checkComments(t *testing.T, path string, text []byte) {
	output := false // what an example prints is as wide as it is
	for i, line := range strings.Split(string(text), "\n") {
		comment := strings.TrimLeft(line, "\t")
		switch {
		case !strings.HasPrefix(comment, "//"):
			output = false
		case comment == "// Output:":
			output = true
		}
		columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
		if !output && columns > widest && prose.MatchString(line) {
			t.Errorf("%s:%d is a comment of %d columns, more than %d", path, i+1, columns, widest)
		}
	}
}
