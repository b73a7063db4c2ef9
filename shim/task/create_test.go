package task

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// A client that does not say which driver it uses may yet use systemd's, which only the cgroup's
// name tells.
func TestSystemdByTheNameOfTheCgroup(t *testing.T) {
	runc := func(o wire.RuncOptions) *wire.Any {
		return &wire.Any{TypeURL: wire.RuncOptionsURL, Value: wire.Marshal(&o)}
	}
	table := func(text string) *wire.Any {
		return &wire.Any{TypeURL: wire.RuntimeOptionsURL, Value: wire.Marshal(&wire.RuntimeOptions{ConfigBody: []byte(text)})}
	}
	for name, tc := range map[string]struct {
		path    string
		options *wire.Any
		want    bool
	}{
		"nothing":          {"system.slice:docker:c", nil, true},
		"empty":            {"system.slice:docker:c", &wire.Any{}, true},
		"another option":   {"system.slice:docker:c", table(`Grouping = "container"`), true},
		"no, in a table":   {"system.slice:docker:c", table(`SystemdCgroup = false`), false},
		"no, in a message": {"system.slice:docker:c", runc(wire.RuncOptions{}), false},
		"a path":           {"/docker/c", nil, false},
		"yes":              {"/docker/c", runc(wire.RuncOptions{SystemdCgroup: true}), true},
	} {
		w := newWorld(t)
		w.must(os.WriteFile(filepath.Join(w.bundle, "config.json"), []byte(`{"linux":{"cgroupsPath":"`+tc.path+`","namespaces":[{"type":"pid"}]}}`), 0o600))
		w.must(call(w, w.create, &wire.CreateTaskRequest{ID: "c", Bundle: w.bundle, Options: tc.options}))
		if w.asked.SystemdCgroup != tc.want {
			t.Errorf("%s: by systemd %t", name, w.asked.SystemdCgroup)
		}
		// The delete that comes after a crash does as the create did.
		if kept, err := options.Load(w.bundle); err != nil || kept.SystemdCgroup != tc.want {
			t.Errorf("%s: the bundle keeps %+v, %v", name, kept, err)
		}
		w.must(call(w, w.kill, &wire.KillRequest{ID: "c", Signal: 9}))
		w.waitFor("c", "")
		w.must(w.drop("c", ""))
	}
}
