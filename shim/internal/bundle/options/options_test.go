package options

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

func TestParse(t *testing.T) {
	want := wire.RuncOptions{BinaryName: "/usr/bin/crun", Root: "/r", SystemdCgroup: true, IoUID: 5, IoGID: 1 << 31, NoPivotRoot: true, ShimCgroup: "/c"}
	// As containerd's CRI writes the table of its configuration anew; shim/test/options has it
	// written by the library that containerd uses.
	table := []byte("BinaryName = \"/usr/bin/crun\"\nGrouping = \"namespace\"\nIoGid = 2147483648\nIoUid = 5\nNoPivotRoot = true\nRoot = \"/r\"\n" +
		"ShimCgroup = \"/c\"\nSystemdCgroup = true\nTypeUrl = \"x\"\n")
	path := filepath.Join(t.TempDir(), "c.toml")
	if err := os.WriteFile(path, table, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		any      *wire.Any
		grouping string
	}{
		"runc":         {&wire.Any{TypeURL: wire.RuncOptionsURL, Value: wire.Marshal(&want)}, ""},
		"runc by host": {&wire.Any{TypeURL: "types.googleapis.com/" + wire.RuncOptionsURL, Value: wire.Marshal(&want)}, ""},
		"table":        {&wire.Any{TypeURL: wire.RuntimeOptionsURL, Value: wire.Marshal(&wire.RuntimeOptions{ConfigBody: table})}, "namespace"},
		"file":         {&wire.Any{TypeURL: wire.RuntimeOptionsURL, Value: wire.Marshal(&wire.RuntimeOptions{ConfigPath: path})}, "namespace"},
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
		return &wire.Any{TypeURL: wire.RuntimeOptionsURL, Value: wire.Marshal(&wire.RuntimeOptions{ConfigBody: []byte(s)})}
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
		"file not there":  {TypeURL: wire.RuntimeOptionsURL, Value: wire.Marshal(&wire.RuntimeOptions{ConfigPath: "/nonexistent/berth.toml"})},
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
