package server_test

import (
	"os"
	"strings"
	"testing"

	cg1 "github.com/containerd/cgroups/v3/cgroup1/stats"
	cg2 "github.com/containerd/cgroups/v3/cgroup2/stats"
	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/proto"
)

const limit = 32 << 20

// greedy needs more memory than the limit.
var greedy = []string{"dd", "if=/dev/zero", "of=/dev/null", "bs=200M", "count=1"}

func (n *node) limited(id string, args ...string) *specs.Spec {
	s := n.spec(id, args...)
	memory := &specs.LinuxMemory{Limit: new(int64(limit))}
	if text, err := os.ReadFile("/proc/swaps"); err == nil && strings.Count(string(text), "\n") > 1 {
		memory.Swap = new(int64(limit))
	}
	s.Linux.Resources = &specs.LinuxResources{Memory: memory}
	return s
}

// oomKills is the count that CRI looks at after an exit of 137.
func (b *box) oomKills() uint64 {
	b.n.t.Helper()
	r, err := b.Stats(b.n.ctx(), &taskapi.StatsRequest{ID: b.id})
	b.n.must(err)
	switch r.Stats.TypeUrl {
	case "io.containerd.cgroups.v1.Metrics":
		var m cg1.Metrics
		b.n.must(proto.Unmarshal(r.Stats.Value, &m))
		if got := m.Memory.GetUsage().GetLimit(); got != limit {
			b.n.t.Errorf("limit %d", got)
		}
		return m.MemoryOomControl.GetOomKill()
	case "io.containerd.cgroups.v2.Metrics":
		var m cg2.Metrics
		b.n.must(proto.Unmarshal(r.Stats.Value, &m))
		if got := m.Memory.GetUsageLimit(); got != limit {
			b.n.t.Errorf("limit %d", got)
		}
		return m.MemoryEvents.GetOomKill()
	}
	b.n.t.Errorf("stats of type %s", r.Stats.TypeUrl)
	return 0
}

// An OOM kill is reported before the exit that it causes,
// however soon that comes, once, and is in the counters afterwards.
func TestOOM(t *testing.T) {
	n := newNode(t)
	keeper := n.define("keeper", n.spec("keeper", "sleep", "1000"))
	n.must(keeper.create())

	init := keeper.join("init", n.limited("init", greedy...))
	n.must(init.create())
	n.must(init.begin(""))
	if got := init.wait(""); got != 137 {
		t.Errorf("the init ended with %d", got)
	}
	if got := init.oomKills(); got != 1 {
		t.Errorf("%d kills in the counters", got)
	}
	n.must(init.delete(""))
	n.wantEvents("init", "create", "start", "oom", "exit init 137", "delete")

	// A child is killed, and the init ends right after it by itself.
	child := keeper.join("child", n.limited("child", "sh", "-c", strings.Join(greedy, " ")+"; exit 4"))
	n.must(child.create())
	n.must(child.begin(""))
	if got := child.wait(""); got != 4 {
		t.Errorf("the init ended with %d", got)
	}
	n.must(child.delete(""))
	n.wantEvents("child", "create", "start", "oom", "exit child 4", "delete")

	// Execs are killed, one after the other, and the container goes on.
	stays := keeper.join("stays", n.limited("stays", "sleep", "1000"))
	n.must(stays.create())
	n.must(stays.begin(""))
	for _, id := range []string{"e", "f"} {
		n.must(stays.addExec(id, greedy...))
		n.must(stays.begin(id))
		if got := stays.wait(id); got != 137 {
			t.Errorf("the exec ended with %d", got)
		}
		n.must(stays.delete(id))
	}
	n.must(stays.kill(9)) // which is not an OOM kill
	stays.wait("")
	if got := stays.oomKills(); got != 2 {
		t.Errorf("%d kills in the counters", got)
	}
	n.must(stays.delete(""))
	n.wantEvents("stays", "create", "start", "exec-added", "exec-started", "oom", "exit e 137", "delete",
		"exec-added", "exec-started", "oom", "exit f 137", "delete", "exit stays 137", "delete")
	keeper.remove()
}
