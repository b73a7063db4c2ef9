package layer

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/tarfile"
)

type e = tarfile.Header

func archive(t *testing.T, entries ...e) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	w := tarfile.NewWriter(&b)
	for _, h := range entries {
		h.Time = time.Unix(1000, 0)
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		text := ""
		if h.Type == tarfile.File {
			text = h.Link // what it holds, here
			h.Size, h.Link = int64(len(text)), ""
		}
		if err := w.Add(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &b
}

func file(name, text string) e { return e{Type: tarfile.File, Name: name, Link: text} }
func dir(name string) e        { return e{Type: tarfile.Directory, Name: name} }
func link(name, to string) e   { return e{Type: tarfile.Symlink, Name: name, Link: to} }
func hard(name, to string) e   { return e{Type: tarfile.HardLink, Name: name, Link: to} }

func apply(t *testing.T, dir string, strict bool, layers ...*bytes.Buffer) error {
	t.Helper()
	tree, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	tree.Strict = strict
	for _, l := range layers {
		if err := tree.Apply(l); err != nil {
			return err
		}
	}
	return tree.Finish()
}

// contents lists what a directory has, with what its files hold.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var list []string
	err := filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		if err != nil || name == dir {
			return err
		}
		line := strings.TrimPrefix(name, dir+"/")
		switch {
		case info.IsDir():
			line += "/"
		case info.Mode()&os.ModeSymlink != 0:
			to, _ := os.Readlink(name)
			line += ">" + to
		default:
			text, _ := os.ReadFile(name)
			line += "=" + string(text)
		}
		list = append(list, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}

func TestLayers(t *testing.T) {
	for name, test := range map[string]struct {
		layers [][]e
		want   string
	}{
		"replaced":            {[][]e{{file("a", "1"), link("l", "a")}, {file("a", "2"), file("l", "3")}}, "a=2 l=3"},
		"parents are made":    {[][]e{{file("x/y/z", "1")}}, "x/ x/y/ x/y/z=1"},
		"absolute":            {[][]e{{file("/x/z", "1"), link("abs", "/x"), file("abs/n", "2")}}, "abs>/x x/ x/n=2 x/z=1"},
		"deleted":             {[][]e{{dir("d"), file("d/a", "1"), file("b", "2")}, {file(".wh.d", ""), file(".wh.none", "")}}, "b=2"},
		"hidden":              {[][]e{{dir("d"), file("d/a", "1")}, {dir("d"), file("d/n/b", "2"), file("d/.wh..wh..opq", "")}}, "d/ d/n/ d/n/b=2"},
		"made again":          {[][]e{{file("a", "1")}, {file("a", "2"), file(".wh.a", "")}}, "a=2"},
		"file for directory":  {[][]e{{dir("d"), file("d/a", "1")}, {file("d", "2")}}, "d=2"},
		"directory for file":  {[][]e{{file("d", "1")}, {dir("d"), file("d/a", "2")}}, "d/ d/a=2"},
		"link for directory":  {[][]e{{dir("d"), file("d/a", "1")}, {link("d", "x")}}, "d>x"},
		"two names":           {[][]e{{file("a", "1"), hard("b", "a")}, {hard("c", "/b")}}, "a=1 b=1 c=1"},
		"a name once more":    {[][]e{{file("a", "1"), hard("b", "a"), hard("b", "a")}}, "a=1 b=1"},
		"devices are skipped": {[][]e{{{Type: tarfile.Char, Name: "null", Major: 1, Minor: 3}, {Type: tarfile.Block, Name: "sda", Major: 8}, file("a", "1")}}, "a=1"},
	} {
		d := t.TempDir()
		var layers []*bytes.Buffer
		for _, l := range test.layers {
			layers = append(layers, archive(t, l...))
		}
		if err := apply(t, d, false, layers...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := contents(t, d); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestModes(t *testing.T) {
	d := t.TempDir()
	l := archive(t, e{Type: tarfile.Directory, Name: "d", Mode: 0o500}, e{Type: tarfile.File, Name: "d/f", Mode: 0o4711, Link: "x"})
	more := archive(t, e{Type: tarfile.File, Name: "d/g", Mode: 0o400, Link: "x"})
	if err := apply(t, d, false, l, more); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{"d": os.ModeDir | 0o500, "d/f": os.ModeSetuid | 0o711, "d/g": 0o400} {
		info, err := os.Lstat(d + "/" + name)
		if err != nil || info.Mode() != want || !info.ModTime().Equal(time.Unix(1000, 0)) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	_ = os.Chmod(d+"/d", 0o700) // or it can't be removed
}

// Whatever an archive says, what lies beside its directory stays as it is.
func TestNothingLeavesTheDirectory(t *testing.T) {
	for name, entries := range map[string][]e{
		"parent":              {file("../outside/new", "evil")},
		"parent inside":       {file("a/../../outside/new", "evil")},
		"absolute":            {file("/outside/secret", "evil")},
		"deletes the parent":  {file("../.wh.outside", "")},
		"deletes ..":          {file(".wh...", "")},
		"deletes .":           {file(".wh..", "")},
		"hides above":         {file("../outside/.wh..wh..opq", "")},
		"link up":             {link("l", "../outside"), file("l/new", "evil")},
		"absolute link":       {link("l", "OUTSIDE"), file("l/new", "evil")},
		"replaced by link":    {dir("d"), link("d", "OUTSIDE"), file("d/secret", "evil")},
		"link for file":       {link("l", "OUTSIDE/secret"), file("l", "evil")},
		"deletes by link":     {link("l", "OUTSIDE"), file("l/.wh.secret", "")},
		"hides by link":       {link("l", "OUTSIDE"), file("l/.wh..wh..opq", "")},
		"deletes the link":    {link("l", "OUTSIDE"), file(".wh.l", "")},
		"mode by link":        {link("l", "OUTSIDE"), dir("l/."), dir("l")},
		"mode by late link":   {e{Type: tarfile.Directory, Name: "d", Mode: 0o777}, file("d/x", ""), file(".wh.d", ""), link("d", "OUTSIDE")},
		"hard link up":        {hard("h", "../outside/secret"), file("h", "evil")},
		"hard link by link":   {link("l", "OUTSIDE"), hard("h", "l/secret"), file("h", "evil")},
		"hard link of a link": {link("l", "OUTSIDE/secret"), hard("h", "l"), file("h", "evil")},
		"links to links":      {link("a", ".."), link("b", "a/.."), link("c", "b/outside"), file("c/new", "evil")},
		"proc":                {link("l", "/proc/self/cwd"), file("l/new", "evil")},
		"fifo by link":        {link("l", "OUTSIDE"), e{Type: tarfile.FIFO, Name: "l/fifo"}},
	} {
		for _, strict := range []bool{false, true} {
			top := t.TempDir()
			outside, inside := top+"/outside", top+"/inside"
			for _, d := range []string{outside, inside} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(outside+"/secret", []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			before, _ := os.Stat(outside)
			for i := range entries {
				entries[i].Link = strings.ReplaceAll(entries[i].Link, "OUTSIDE", outside)
			}
			_ = apply(t, inside, strict, archive(t, entries...))
			after, err := os.Stat(outside)
			if err != nil || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
				t.Errorf("%s: the directory outside was changed: %v", name, err)
			}
			if got := contents(t, outside); got != "secret=secret" {
				t.Errorf("%s: outside is %s", name, got)
			}
			if info, err := os.Stat(outside + "/secret"); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: %v, %v", name, info, err)
			}
			for i := range entries {
				entries[i].Link = strings.ReplaceAll(entries[i].Link, outside, "OUTSIDE")
			}
		}
	}
}

// A strict tree has no names that lead through links, even to what is inside: what was shown of an
// archive by its names is what happens.
func TestStrict(t *testing.T) {
	d := t.TempDir()
	err := apply(t, d, true, archive(t, dir("etc"), link("l", "etc"), file("l/passwd", "evil")))
	if err == nil || !strings.Contains(err.Error(), "leads through a symbolic link") {
		t.Error(err)
	}
	if _, err := os.Lstat(d + "/etc/passwd"); err == nil {
		t.Error("it was made")
	}
}

func TestUpperHasWhiteouts(t *testing.T) {
	d := t.TempDir()
	tree, err := Open(d)
	if err != nil {
		t.Fatal(err)
	}
	defer tree.Close()
	lower := t.TempDir()
	if err := os.Mkdir(lower+"/d", 0o700); err != nil {
		t.Fatal(err)
	}
	tree.Upper = &Upper{Attributes: "user.overlay.", Lower: lower}
	if err := tree.Apply(archive(t, file("d/.wh.gone", ""))); err != nil {
		t.Fatal(err)
	}
	if err := tree.Finish(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(d + "/d/gone")
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Errorf("%v, %v", info, err)
	}
	// The directory shows as the one below did.
	if info, err := os.Lstat(d + "/d"); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}
