package systemd_test

import (
	"context"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/godbus/dbus/v5"
)

func TestRegister(t *testing.T) {
	f := newFake()
	m := start(t, f)
	if err := m.Register(context.Background(), systemd.Machine{Name: "web-1", Leader: 42, Root: "/srv/web"}); err != nil {
		t.Fatal(err)
	}
	if got := f.machines["web-1"]; got != "[] berth container 42 /srv/web" {
		t.Errorf("registered as %q", got)
	}
	if err := m.Register(context.Background(), systemd.Machine{Name: "web-2", ID: [16]byte{15: 7}, Leader: 42}); err != nil {
		t.Fatal(err)
	}
	if got := f.machines["web-2"]; !strings.HasPrefix(got, "[0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 7] ") {
		t.Errorf("registered as %q", got)
	}
	f.refuse["RegisterMachine"] = dbus.NewError("org.freedesktop.DBus.Error.ServiceUnknown", []any{"The name is not activatable"})
	if err := m.Register(context.Background(), systemd.Machine{Name: "web-3"}); err == nil || !strings.Contains(err.Error(), "systemd-container") {
		t.Errorf("without machined: %v", err)
	}
	for _, name := range []string{"", "-a", "a-", "a..b", "a.", "a/b", "a-.b", strings.Repeat("a", 65)} {
		if err := m.Register(context.Background(), systemd.Machine{Name: name}); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}
