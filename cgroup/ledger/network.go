package ledger

import (
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func (t *translation) network(n *specs.LinuxNetwork) {
	if n == nil {
		return
	}
	if n.ClassID != nil {
		const at = "/network/classID"
		t.set(at, at, decimal(*n.ClassID), "", nil)
	}
	for i, p := range n.Priorities {
		at := "/network/priorities/" + strconv.Itoa(i)
		if p.Name == "" || strings.ContainsAny(p.Name, " \t\n/") {
			t.fail(at+"/name", strconv.Quote(p.Name)+" is not the name of an interface", "")
			continue
		}
		t.set("/network/priorities/*", at, p.Name+" "+decimal(p.Priority), "", nil)
	}
}
