package server_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/containerd/containerd/api/types"
	"github.com/opencontainers/runtime-spec/specs-go/features"
	"google.golang.org/protobuf/proto"
)

// What -info says is what containerd's CRI looks for: the features document, by
// the name of its type, as JSON.
func TestInfoAndVersion(t *testing.T) {
	n := newNode(t)
	out, err := n.call(n.dir, nil, "-v")
	if err != nil || !strings.HasPrefix(string(out), "containerd-shim-berth-v2 version ") {
		t.Errorf("-v: %q, %v", out, err)
	}
	out, err = n.call(n.dir, nil, "-info") // as containerd asks any runtime not named runc
	n.must(err)
	var info types.RuntimeInfo
	n.must(proto.Unmarshal(out, &info))
	if info.Name != "io.containerd.berth.v2" || info.Version.GetVersion() == "" {
		t.Errorf("%v", &info)
	}
	var f features.Features
	n.must(json.Unmarshal(info.Features.GetValue(), &f))
	if !slices.Contains(f.MountOptions, "rro") || !slices.Contains(f.Linux.Namespaces, "user") || !*f.Linux.MountExtensions.IDMap.Enabled {
		t.Errorf("features: %s", info.Features.GetValue())
	}
	options, err := proto.Marshal(n.options)
	n.must(err)
	out, err = n.call(n.dir, options, "-info")
	n.must(err)
	n.must(proto.Unmarshal(out, &info))
	if info.Options.GetTypeUrl() != n.options.TypeUrl {
		t.Errorf("options: %v", info.Options)
	}
}

// containerd before 2.3 gives the bare options, or nothing, and gets the address
// alone; a shim that was started so is found by one that is asked in the new way.
func TestStartInTheOldWay(t *testing.T) {
	n := newNode(t)
	dir := n.bundle("c", n.spec("c", "true"))
	n.env = append(n.env, "BERTH_SHIM_SOCKET_DIR="+n.dir+"/s")
	options, err := proto.Marshal(n.options)
	n.must(err)
	out, err := n.call(dir, options, n.args("c", dir, "start")...)
	n.must(err)
	if !strings.HasPrefix(string(out), "unix://"+n.dir+"/s/") {
		t.Fatalf("%q is not an address", out)
	}
	b := &box{shim: n.connect(string(out)), id: "c", dir: dir}
	n.must(b.create())
	n.must(b.begin(""))
	b.wait("")
	if again := n.start("c", dir); again.pid != b.shim.pid {
		t.Errorf("shims %d and %d for one container", again.pid, b.shim.pid)
	}
	n.must(b.delete(""))
	// The second start has announced the container once more.
	n.must(b.create())
	n.must(b.kill(9))
	b.wait("")
	n.must(b.delete(""))
	b.shutdown()
	b.gone()
	for _, args := range [][]string{{"-id", "c", "start"}, {"dance"}, {"-what"}, {"-namespace", "n", "-id", "c", "start", "delete"}} {
		if out, err := n.call(dir, nil, args...); err == nil {
			t.Errorf("%q: %q and no error", args, out)
		}
	}
}
