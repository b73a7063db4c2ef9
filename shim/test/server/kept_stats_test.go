package server_test

import "testing"

// What a container has used, and died of, is known after its end, though its shim is killed then.
func TestStatsOfTheEndedWithKeeper(t *testing.T) {
	t.Setenv("BERTH_SHIM_KEEPER", "1")
	n := newNode(t)
	b := n.define("c", n.limited("c", greedy...))
	n.must(b.create())
	n.must(b.begin(""))
	if got := b.wait(""); got != 137 {
		t.Errorf("status %d", got)
	}
	b.killed()
	if got := b.oomKills(); got != 1 {
		t.Errorf("%d kills in the counters", got)
	}
	n.must(b.delete(""))
	b.shutdown()
	b.gone()
	n.wantEvents("c", "create", "start", "oom", "exit c 137", "delete")
}
