package server_test

import (
	"strings"
	"testing"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// A new program that a keeper has executed and that does not take over is followed by the one
// before, which goes on with all that there is; from one that does take over, there is a way back.
func TestUndoneWithKeeper(t *testing.T) {
	n := newKept(t)
	c := n.talking("c")
	c.shim.keeperOf(uint32(c.shim.pid))
	for _, name := range []string{"panics", "hangs"} {
		if _, err := c.upgradeTo(n.other(name)); err == nil || !strings.Contains(err.Error(), "could not take over") {
			t.Errorf("upgraded to one that %s: %v", name, err)
		}
		c.say(name)
	}
	upgraded := func(program string) *wire.UpgradeResponse {
		t.Helper()
		r, err := c.upgradeTo(program)
		n.must(err)
		c.say(r.To)
		return r
	}
	there := upgraded(n.other("next"))
	if there.To != "next" {
		t.Errorf("upgraded to %q", there.To)
	}
	if back := upgraded(n.binary); back.From != "next" || back.To != there.From {
		t.Errorf("upgraded from %q to %q", back.From, back.To)
	}
	c.killed()
	c.say("once more")
	c.end()
}
