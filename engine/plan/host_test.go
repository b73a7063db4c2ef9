package plan

import (
	"testing"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/host"
)

// SystemdHost is a host with a systemd of a version, on one of the layouts that systemd makes.
func SystemdHost(t testing.TB, layout string, version int) *host.Host {
	t.Helper()
	l, ok := ledger.Named(layout, 0)
	if !ok {
		t.Fatalf("no layout %s", layout)
	}
	h := &host.Host{Layout: l, Unified: len(l.Legacy) == 0}
	h.Systemd = &host.Systemd{Version: version, Root: "/", Devices: "Character devices:\n  1 mem\n 10 misc\n136 pts\n\nBlock devices:\n  8 sd\n 65 sd\n"}
	return h
}
