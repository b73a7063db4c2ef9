package cgroup

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func needUnified(t testing.TB, host *Host) *Hierarchy {
	t.Helper()
	u := host.Unified()
	if u == nil {
		t.Skip("no version 2 here")
	}
	return u
}

func needRoot(t testing.TB, host *Host) {
	t.Helper()
	if !host.privileged() {
		t.Skip("it takes root")
	}
}

// markDelegated does what systemd does for Delegate=yes.
func markDelegated(t testing.TB, g *Group) {
	t.Helper()
	if err := unix.Setxattr(g.Directory("unified"), "user.delegate", []byte("1"), 0); err != nil {
		t.Skipf("no extended attributes on cgroups here: %v", err)
	}
}

func TestUnitsOfSystemdAreLeftAlone(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	needUnified(t, host)
	top := testPath() + ".slice"
	service := makeGroupAt(t, host, top+"/web.service")
	path := service.Path() + "/payload"

	_, err := host.Create(path)
	var refused *NotOwnerError
	if !errors.As(err, &refused) || refused.Owner.Unit != "web.service" || !errors.Is(err, ErrNotOwner) || !Denied(err) {
		t.Fatalf("a group inside of a service: %v", err)
	}
	if !strings.Contains(err.Error(), "web.service") {
		t.Errorf("the refusal does not name the owner: %v", err)
	}
	if _, err := host.Create(top + "/x"); !errors.As(err, &refused) || !strings.Contains(err.Error(), "slices cannot be delegated") {
		t.Errorf("a group inside of a slice: %v", err)
	}
	other, err := host.Open(service.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if owner := other.Owner(); owner.Ownership != Systemd || owner.Unit != "web.service" {
		t.Errorf("owner %+v", owner)
	}
	if err := other.Join(os.Getpid()); !errors.Is(err, ErrNotOwner) {
		t.Errorf("join of a unit: %v", err)
	}

	markDelegated(t, service)
	payload, err := host.Create(path)
	if err != nil {
		t.Fatalf("below a delegated service: %v", err)
	}
	t.Cleanup(func() { payload.Destroy() })
	// The unit's own group stays systemd's, what is below is free.
	if owner := other.Owner(); owner.Ownership != Systemd {
		t.Errorf("owner of the unit %+v", owner)
	}
	again, err := host.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if owner := again.Owner(); owner.Ownership != Delegated || owner.Unit != "web.service" {
		t.Errorf("owner below the unit %+v", owner)
	}
	if err := again.Freeze(); err != nil {
		t.Errorf("freeze below a delegated unit: %v", err)
	}
	if err := again.Thaw(); err != nil {
		t.Error(err)
	}
	if owner := payload.Owner(); owner.Ownership != Ours {
		t.Errorf("owner of what was made %+v", owner)
	}
}

func makeGroupAt(t testing.TB, host *Host, path string, opts ...Option) *Group {
	t.Helper()
	var record []string // as if it were put there by the caller, no matter who made what is above it
	for _, h := range host.Hierarchies() {
		record = append(record, h.Mountpoint+path)
	}
	g, err := host.Create(path, append(opts, Made(record))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, g) })
	return g
}

// What the manager of a delegated unit makes below it is the manager's: units there
// are asked for their own delegation.
func TestInnerUnitDecides(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	needUnified(t, host)
	top := testPath() + ".slice"
	manager := makeGroupAt(t, host, top+"/user@1000.service")
	markDelegated(t, manager)
	scope := makeGroupAt(t, host, manager.Path()+"/app.slice/run-1.scope")
	if _, err := host.Create(scope.Path() + "/x"); !errors.Is(err, ErrNotOwner) {
		t.Errorf("below a scope of the user's manager: %v", err)
	}
	other, err := host.Open(scope.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if owner := other.Owner(); owner.Ownership != Systemd || owner.Unit != "run-1.scope" {
		t.Errorf("owner %+v", owner)
	}
}

func TestRootIsNobodys(t *testing.T) {
	host := hostForTest(t)
	root, err := host.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if owner := root.Owner(); owner.Ownership != Kernel {
		t.Errorf("owner %+v", owner)
	}
	if err := root.Kill(); !errors.Is(err, ErrNotOwner) || !strings.Contains(err.Error(), "root of the hierarchy") {
		t.Fatalf("kill of the root: %v", err)
	}
	forced, err := host.Open("/", Force())
	if err != nil {
		t.Fatal(err)
	}
	defer forced.Close()
	if err := forced.Kill(); !errors.Is(err, ErrNotOwner) {
		t.Fatalf("kill of the root by force: %v", err)
	}
	if err := forced.Signal(0); !errors.Is(err, ErrNotOwner) {
		t.Fatalf("signal to the root by force: %v", err)
	}
	if err := root.Freeze(); err == nil {
		t.Fatal("the root was frozen")
	}
	if err := root.Destroy(); err != nil {
		t.Errorf("destroy of the root, which removes nothing: %v", err)
	}
}

func TestUnitOf(t *testing.T) {
	for path, want := range map[string]string{
		"/": "", "/a/b": "", "/system.slice": "system.slice", "/system.slice/a.service/x/y": "a.service",
		"/user.slice/_cpu.service": "cpu.service", "/a.slice.d/b": "", "/.slice": "", "/x.mount/y": "x.mount",
	} {
		if got, _ := unitOf(path); got != want {
			t.Errorf("unit of %s: %q, want %q", path, got, want)
		}
	}
}
