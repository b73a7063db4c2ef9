package options

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/BurntSushi/toml"
	runc "github.com/containerd/containerd/api/types/runc/options"
	runtimeoptions "github.com/containerd/containerd/api/types/runtimeoptions/v1"
	"google.golang.org/protobuf/proto"

	"github.com/berth-runtime/berth/shim/wire"
)

func any(t *testing.T, url string, m proto.Message) *wire.Any {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return &wire.Any{TypeURL: url, Value: b}
}

func TestParse(t *testing.T) {
	full := &runc.Options{BinaryName: "/usr/bin/crun", Root: "/r", SystemdCgroup: true, IoUid: 5, IoGid: 1 << 31, NoPivotRoot: true, ShimCgroup: "/c"}
	want := wire.RuncOptions{BinaryName: "/usr/bin/crun", Root: "/r", SystemdCgroup: true, IoUID: 5, IoGID: 1 << 31, NoPivotRoot: true, ShimCgroup: "/c"}
	// As containerd's CRI does it: the table of its configuration, marshalled again.
	table, err := toml.Marshal(map[string]interface{}{
		"BinaryName": "/usr/bin/crun", "Root": "/r", "SystemdCgroup": true, "IoUid": 5, "IoGid": 1 << 31, "NoPivotRoot": true,
		"ShimCgroup": "/c", "Grouping": "namespace", "TypeUrl": "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, table, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		any      *wire.Any
		grouping string
	}{
		"runc":         {any(t, wire.RuncOptionsURL, full), ""},
		"runc by host": {any(t, "types.googleapis.com/"+wire.RuncOptionsURL, full), ""},
		"table":        {any(t, wire.RuntimeOptionsURL, &runtimeoptions.Options{ConfigBody: table}), "namespace"},
		"file":         {any(t, wire.RuntimeOptionsURL, &runtimeoptions.Options{ConfigPath: path}), "namespace"},
		"own":          {&wire.Any{TypeURL: wire.BerthOptionsURL, Value: wire.Marshal(&wire.BerthOptions{Runc: &want, Grouping: "pod"})}, "pod"},
	} {
		o, err := Parse(tc.any)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if o.RuncOptions != want || o.Grouping != tc.grouping || !o.DriverSaid {
			t.Errorf("%s: %+v", name, o)
		}
	}
	for name, a := range map[string]*wire.Any{"nil": nil, "empty": {}} {
		if o, err := Parse(a); err != nil || *o != (Options{}) {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	body := func(s string) *wire.Any {
		return any(t, wire.RuntimeOptionsURL, &runtimeoptions.Options{ConfigBody: []byte(s)})
	}
	for name, a := range map[string]*wire.Any{
		"another type":    {TypeURL: "io.example.Options"},
		"broken":          {TypeURL: wire.RuncOptionsURL, Value: []byte{0xff}},
		"unknown key":     body("SystemdCgoup = true"),
		"not a bool":      body(`SystemdCgroup = "true"`),
		"not a number":    body("IoUid = -1"),
		"not a string":    body("BinaryName = crun"),
		"no end":          body(`BinaryName = "crun`),
		"no value":        body("BinaryName"),
		"sub-table":       body("[BinaryName]"),
		"rest":            body(`BinaryName = "a" b`),
		"grouping":        body(`Grouping = "node"`),
		"file not there":  any(t, wire.RuntimeOptionsURL, &runtimeoptions.Options{ConfigPath: "/nonexistent/berth.toml"}),
		"escape":          body(`BinaryName = "\x"`),
		"ends in escape":  body(`BinaryName = "\`),
		"unicode too far": body(`BinaryName = "\U00110000"`),
	} {
		if o, err := Parse(a); err == nil {
			t.Errorf("%s: accepted as %+v", name, o)
		} else {
			t.Log(err)
		}
	}
}

// What is accepted of a table must mean what TOML says it means.
func FuzzTable(f *testing.F) {
	f.Add("BinaryName = \"a\\u00e9\\n\" # c\nRoot='\\x'\nIoUid = 1_0\nSystemdCgroup = true\n")
	f.Add("\"Root\" = \"\\\"\\\\\\t\\r\\b\\f\\U0001F600\"\nShimCgroup = ''\n'SystemdCgroup' = false # c\n# IoUid = 1\nTypeUrl = [1, 2]\n")
	f.Add("BinaryName = \"a\" b\n")
	f.Add("[runtime]\nRoot = 'x'\n")
	f.Add("Root = \"\"\"x\"\"\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		ours := new(Options)
		if parseTable(text, ours.set) != nil {
			return
		}
		var theirs struct {
			BinaryName, Root, ShimCgroup string
			SystemdCgroup                bool
			IoUid                        uint32
		}
		if err := toml.Unmarshal([]byte(text), &theirs); err != nil {
			return // we are laxer about what is no TOML, such as a key that comes twice
		}
		if ours.BinaryName != theirs.BinaryName || ours.Root != theirs.Root || ours.ShimCgroup != theirs.ShimCgroup ||
			ours.SystemdCgroup != theirs.SystemdCgroup || ours.IoUID != theirs.IoUid {
			t.Fatalf("of %q: %+v, toml has %+v", text, ours, theirs)
		}
	})
}

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("of an empty bundle: %v", err)
	}
	o := &Options{RuncOptions: wire.RuncOptions{BinaryName: "/a \"b", Root: "/r", SystemdCgroup: true, NoPivotRoot: true, NoNewKeyring: true}}
	if err := o.Save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Load(dir)
	if err != nil || *got != *o {
		t.Fatalf("%+v, %v", got, err)
	}
}

// A create finds what its start has written, and writes only what differs.
func TestSaveAgain(t *testing.T) {
	dir := t.TempDir()
	o := &Options{RuncOptions: wire.RuncOptions{Root: "/r"}}
	stat := func() os.FileInfo {
		t.Helper()
		if err := o.Save(dir); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := stat()
	if !os.SameFile(first, stat()) {
		t.Error("the same options were written twice")
	}
	o.Root = "/another"
	if os.SameFile(first, stat()) {
		t.Error("other options were not written")
	}
	if got, err := Load(dir); err != nil || *got != *o {
		t.Errorf("%+v, %v", got, err)
	}
}
