package options_test

import (
	"testing"

	"github.com/BurntSushi/toml"

	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

func TestTableOfTheLibrary(t *testing.T) {
	table, err := toml.Marshal(map[string]any{
		"BinaryName": "/usr/bin/crun", "Root": "/r", "SystemdCgroup": true, "IoUid": 5, "IoGid": 1 << 31, "NoPivotRoot": true,
		"ShimCgroup": "/c", "Grouping": "namespace", "Keeper": true, "TypeUrl": "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	o, err := options.Parse(&wire.Any{TypeURL: wire.RuntimeOptionsURL, Value: wire.Marshal(&wire.RuntimeOptions{ConfigBody: table})})
	want := wire.RuncOptions{BinaryName: "/usr/bin/crun", Root: "/r", SystemdCgroup: true, IoUID: 5, IoGID: 1 << 31, NoPivotRoot: true, ShimCgroup: "/c"}
	if err != nil || o.RuncOptions != want || o.Grouping != "namespace" || !o.Keeper {
		t.Errorf("%+v, %v, of\n%s", o, err, table)
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
		ours, err := options.Parse(&wire.Any{TypeURL: wire.RuntimeOptionsURL, Value: wire.Marshal(&wire.RuntimeOptions{ConfigBody: []byte(text)})})
		if err != nil {
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
