package unit

import (
	"strings"
	"testing"
)

var resolveCases = []struct {
	path, id         string
	rootless         bool
	slice, unit, dir string
}{
	{"", "c1", false, "system.slice", "berth-c1.scope", "/system.slice/berth-c1.scope"},
	{"", "c1", true, "user.slice", "berth-c1.scope", "/user.slice/berth-c1.scope"},
	{":berth:c1", "x", false, "system.slice", "berth-c1.scope", "/system.slice/berth-c1.scope"},
	{":bpf:devices", "x", false, "system.slice", "bpf-devices.scope", "/system.slice/_bpf-devices.scope"},
	{":bpf:firewall", "x", false, "system.slice", "bpf-firewall.scope", "/system.slice/_bpf-firewall.scope"},
	{"machine.slice:libpod:abc", "x", true, "machine.slice", "libpod-abc.scope", "/machine.slice/libpod-abc.scope"},
	{"user-1000.slice:docker:abc", "x", false, "user-1000.slice", "docker-abc.scope", "/user.slice/user-1000.slice/docker-abc.scope"},
	{"-:p:n", "x", false, "-.slice", "p-n.scope", "/p-n.scope"},
	{"-.slice:p:n", "x", false, "-.slice", "p-n.scope", "/p-n.scope"},
	{"kubepods.slice:ignored:kubepods-pod1.slice", "x", false, "kubepods.slice", "kubepods-pod1.slice", "/kubepods.slice/kubepods-pod1.slice"},
	{"::test.slice", "x", false, "system.slice", "test.slice", "/test.slice"},
	{"a-b-c.slice:p:n", "x", false, "a-b-c.slice", "p-n.scope", "/a.slice/a-b.slice/a-b-c.slice/p-n.scope"},
	{"a.slice::n", "x", false, "a.slice", "-n.scope", "/a.slice/-n.scope"},
	{"a.slice:p:n@1", "x", false, "a.slice", "p-n@1.scope", "/a.slice/p-n@1.scope"},
	{"", "a+b", false, "system.slice", `berth-a\x2bb.scope`, `/system.slice/berth-a\x2bb.scope`},
	{"_x.slice:p:n", "x", false, "_x.slice", "p-n.scope", "/__x.slice/p-n.scope"},
	{"memory.slice:p:n", "x", false, "memory.slice", "p-n.scope", "/_memory.slice/p-n.scope"},
}

func TestResolve(t *testing.T) {
	for _, c := range resolveCases {
		p, err := Resolve(c.path, c.id, c.rootless)
		if err != nil {
			t.Errorf("%q: %v", c.path, err)
			continue
		}
		dir, err := p.Path()
		if p.Slice != c.slice || p.Unit != c.unit || dir != c.dir || err != nil {
			t.Errorf("%q: got %+v at %s (%v), want %s %s at %s", c.path, p, dir, err, c.slice, c.unit, c.dir)
		}
		if p.IsSlice() != strings.HasSuffix(c.unit, ".slice") {
			t.Errorf("%q: IsSlice is %v", c.path, p.IsSlice())
		}
	}
}

var refusedPaths = map[string]string{
	"/foo/bar":                              "cgroupfs driver",
	"foo":                                   "slice:prefix:name",
	"a:b:c:d":                               "slice:prefix:name",
	"user.slice/user-1000.slice:p:n":        "slash",
	"user:p:n":                              "does not end in .slice",
	".slice:p:n":                            "no name",
	"-a.slice:p:n":                          "begins with a dash",
	"a-.slice:p:n":                          "dash before .slice",
	"a--b.slice:p:n":                        "two dashes",
	"a@b.slice:p:n":                         "no instances",
	"a b.slice:p:n":                         `has " "`,
	"a.slice:p:":                            "empty",
	"a.slice:p:-.slice":                     "root slice",
	"a.slice:p:b--c.slice":                  "two dashes",
	"a.slice:@p:n":                          "begins with an @",
	"a.slice:p:n@":                          "of a template",
	"a.slice:p:../x":                        "slash",
	"a.slice:p:" + strings.Repeat("x", 255): "longer than 255",
}

func TestResolveRefuses(t *testing.T) {
	for path, reason := range refusedPaths {
		if p, err := Resolve(path, "id", false); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: got %+v, %v, want %q", path, p, err, reason)
		}
	}
}

func TestEscape(t *testing.T) {
	for _, c := range [][2]string{
		{"foo", "foo"}, {"foo-bar", `foo\x2dbar`}, {"foo/bar", "foo-bar"}, {".hidden", `\x2ehidden`}, {"a.b", "a.b"},
		{"a b", `a\x20b`}, {`a\b`, `a\x5cb`}, {"ä", `\xc3\xa4`}, {"a:b_c", "a:b_c"}, {"x@y", `x\x40y`}, {"", ""},
	} {
		if got := Escape(c[0]); got != c[1] {
			t.Errorf("%q is %q, want %q", c[0], got, c[1])
		}
		if back, err := Unescape(c[1]); err != nil || back != c[0] {
			t.Errorf("%q comes back as %q (%v), want %q", c[1], back, err, c[0])
		}
	}
	for _, s := range []string{`\`, `a\x2`, `a\y20`, `\xzz`} {
		if got, err := Unescape(s); err == nil || !strings.Contains(err.Error(), "column") {
			t.Errorf("%q is %q, %v", s, got, err)
		}
	}
}

func TestSliceName(t *testing.T) {
	for _, c := range [][2]string{
		{"/", "-.slice"}, {"/foo", "foo.slice"}, {"/foo/bar", "foo-bar.slice"}, {"//foo/./bar/", "foo-bar.slice"},
		{"/foo-bar", `foo\x2dbar.slice`}, {"/foo/bar-baz", `foo-bar\x2dbaz.slice`},
	} {
		got, err := SliceName(c[0])
		if err != nil || got != c[1] {
			t.Errorf("%s is %s (%v), want %s", c[0], got, err, c[1])
		}
		back, err := SlicePathName(c[1])
		again, err2 := SliceName(back)
		if err != nil || err2 != nil || again != c[1] {
			t.Errorf("%s comes back as %s and then %s (%v, %v)", c[1], back, again, err, err2)
		}
	}
	for path, reason := range map[string]string{
		"foo": "not absolute", "/a/../b": "..", `/foo\x2dbar`: "escaped already", "/foo.slice/bar": "slice already",
	} {
		if got, err := SliceName(path); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s is %s, %v", path, got, err)
		}
	}
	if _, err := SlicePathName(`a\x2fb.slice`); err == nil {
		t.Error("a slash comes out of a name")
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("a-b.slice:p:n", "id")
	f.Add("", "a+b")
	f.Add("-:x:y.slice", "")
	for _, c := range resolveCases {
		f.Add(c.path, c.id)
	}
	for path := range refusedPaths {
		f.Add(path, "id")
	}
	f.Fuzz(func(t *testing.T, path, id string) {
		p, err := Resolve(path, id, false)
		if err != nil {
			return
		}
		dir, err := p.Path()
		if err != nil {
			t.Fatalf("%q: %+v has no path: %v", path, p, err)
		}
		for part := range strings.SplitSeq(strings.TrimPrefix(dir, "/"), "/") {
			if part == "" || part == "." || part == ".." || len(part) > maxName+1 || !strings.HasSuffix(part, ".slice") && !strings.HasSuffix(part, ".scope") {
				t.Fatalf("%q: path %q", path, dir)
			}
		}
	})
}

func FuzzEscape(f *testing.F) {
	f.Add("a-b/c")
	f.Add("\x00.")
	f.Fuzz(func(t *testing.T, s string) {
		e := Escape(s)
		back, err := Unescape(e)
		if err != nil || back != s {
			t.Fatalf("%q is %q, which is %q (%v)", s, e, back, err)
		}
		if len(e) <= maxName && e != "" && checkName(e) != nil {
			t.Fatalf("%q is %q, which is not a name: %v", s, e, checkName(e))
		}
	})
}
