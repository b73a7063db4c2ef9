package settings

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParse(t *testing.T) {
	s, err := Parse("berth.toml", "# a host\nroot = \"/srv/berth\" # state\n\ncgroup-driver = 'cgroupfs'\ncgroup-parent = \"/fleet/batch\"\nseccomp-learn-directory = \"/var/lib/learned\"\n")
	if want := (Settings{Cgroupfs, "/fleet/batch", "/srv/berth", "/var/lib/learned"}); err != nil || s != want {
		t.Errorf("%+v, %v; want %+v", s, err, want)
	}
	if s, err := Parse("berth.toml", ""); err != nil || s != (Settings{Driver: Auto}) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestRefused(t *testing.T) {
	for text, want := range map[string]string{
		"\ncgroup-parnt = \"/a\"":                  "berth.toml: line 2: cgroup-parnt: unknown key, is it cgroup-parent?",
		"colour = 1":                               "line 1: colour: unknown key: the keys are cgroup-driver, cgroup-parent, root and seccomp-learn-directory",
		"[cgroup]":                                 "line 1: \"[cgroup]\" is not of the form KEY = VALUE",
		"cgroup-driver = \"sysd\"":                 "\"sysd\" is none of auto, cgroupfs and systemd",
		"cgroup-driver = true":                     "true is not a string",
		"seccomp-learn-directory = \"learned\"":    "\"learned\" is not an absolute path",
		"root = \"run\"":                           "\"run\" is not an absolute path",
		"root = \"/a\"\nroot = \"/b\"":             "line 2: root: it is given twice",
		"cgroup-parent = \"/\"":                    "belongs to the init system",
		"cgroup-parent = \"\"":                     "is not the path of a cgroup",
		"cgroup-parent = \"a\"":                    "is not the path of a cgroup",
		"cgroup-parent = \"/a/../b\"":              "is not the path of a cgroup",
		"cgroup-parent = \"machine.slice\"":        "write a path, as /foo/bar for foo-bar.slice",
		"cgroup-parent = \"/machine.slice\"":       "write a path, as /foo/bar for foo-bar.slice",
		"cgroup-driver = \"auto\" \"cgroupfs\"":    "stands after the string",
		"cgroup-parent = \"/a\"\ncgroup-driver = ": "line 2: cgroup-driver:  is not a string",
	} {
		if _, err := Parse("berth.toml", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want something of %q", text, err, want)
		}
	}
}

// A file that is not there costs one call and is no error; one that can't be read is.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{dir + "/none", dir + "/none/none"} {
		if text, err := read(file); text != "" || err != nil {
			t.Errorf("%s: %q, %v", file, text, err)
		}
	}
	if _, err := read(dir); err == nil {
		t.Error("a directory was read")
	}
	for what, put := range map[string]func(file string) error{
		"not a regular file":        func(file string) error { return unix.Mkfifo(file, 0o600) },
		"the most that is read":     func(file string) error { return os.WriteFile(file, make([]byte, most+1), 0o600) },
		"another user may write to": func(file string) error { return errors.Join(os.WriteFile(file, nil, 0o600), os.Chmod(file, 0o606)) },
		"owner 1234":                func(file string) error { return errors.Join(os.WriteFile(file, nil, 0o600), os.Chown(file, 1234, 0)) },
		"owner 65534":               func(file string) error { return errors.Join(os.WriteFile(file, nil, 0o600), os.Chown(file, 65534, 0)) },
	} {
		file := filepath.Join(t.TempDir(), "berth.toml")
		if err := put(file); errors.Is(err, unix.EPERM) {
			t.Logf("%s: left out: %v", what, err)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		link := file + ".link"
		if err := os.Symlink(file, link); err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{file, link} {
			if _, err := ReadFile(file); err == nil || !strings.Contains(err.Error(), what) || !strings.Contains(err.Error(), file) {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	file, long := filepath.Join(dir, "berth.toml"), strings.Repeat("# long\n", 5000)
	if err := os.WriteFile(file, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := read(file); err != nil || text != long {
		t.Errorf("%d bytes of %d, %v", len(text), len(long), err)
	}
}

func TestWithParent(t *testing.T) {
	for _, test := range []struct{ text, parent, want string }{
		{"", "/machine", "cgroup-parent = \"/machine\"\n"},
		{"root = \"/a\"", "/machine", "root = \"/a\"\ncgroup-parent = \"/machine\"\n"},
		{"# why\ncgroup-parent = \"/a\"\nroot = \"/a\"\n", "/b", "# why\ncgroup-parent = \"/b\"\nroot = \"/a\"\n"},
		{"'cgroup-parent'='/a'", "/b", "cgroup-parent = \"/b\"\n"},
		{"root = \"/a\"\ncgroup-parent = \"/b\"\n", "", "root = \"/a\"\n"},
		{"#cgroup-parent = \"/a\"\n", "", "#cgroup-parent = \"/a\"\n"},
	} {
		if got := WithParent(test.text, test.parent); got != test.want {
			t.Errorf("%q with %s: %q, want %q", test.text, test.parent, got, test.want)
		}
	}
}

// Whatever is read stays as it is when the parent is changed, but for the parent.
func FuzzWithParent(f *testing.F) {
	f.Add("root = \"/a\"\ncgroup-parent = \"/b\" # c\n")
	f.Fuzz(func(t *testing.T, text string) {
		before, err := Parse("f", text)
		if err != nil {
			return
		}
		for _, parent := range []string{"/other", ""} {
			after, err := Parse("f", WithParent(text, parent))
			want := before
			want.Parent = parent
			if err != nil || after != want {
				t.Errorf("%q with %q: %+v, %v", text, parent, after, err)
			}
		}
	})
}
