package systemd_test

import (
	"context"
	"testing"

	"github.com/berth-runtime/berth/cgroup/systemd"
)

// A systemd that is executed anew (daemon-reexec) drops connections more than once. The calls are
// made again until it answers, and no unit is started twice.
func TestLostAgainAndAgain(t *testing.T) {
	for _, c := range []struct {
		method string
		after  bool
		starts int
	}{
		{"StartTransientUnit", false, 1}, {"StartTransientUnit", true, 1}, {"AddMatch", false, 1}, {"Get", false, 1}, {"Get", true, 1},
	} {
		f := newFake()
		f.breakOn, f.breakMore, f.breakAfter = c.method, 3, c.after
		if c.method == "StartTransientUnit" && c.after {
			f.breakMore = 0 // heard once, it is not called again
		}
		m := start(t, f)
		if err := m.Start(context.Background(), testPlace.Unit, testProperties()); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if n := f.called("StartTransientUnit"); n != c.starts {
			t.Errorf("%+v: started %d times", c, n)
		}
	}
}

// When Stop returns, systemd has read that it is to forget the unit: what it has not read when the
// connection closes is lost, and the unit stays as one that failed.
func TestStopHasBeenRead(t *testing.T) {
	f := newFake()
	m := start(t, f)
	ctx := context.Background()
	if err := m.Start(ctx, testPlace.Unit, testProperties()); err != nil {
		t.Fatal(err)
	}
	if err := m.Stop(ctx, testPlace.Unit); err != nil {
		t.Error(err)
	}
	f.mu.Lock()
	heard := f.calls[len(f.calls)-1]
	f.mu.Unlock()
	if heard != "ResetFailedUnit" {
		t.Errorf("the last call that it has answered is %s", heard)
	}
}

// A change waits until systemd has written it, which takes one question behind it.
func TestSetWaitsForTheFiles(t *testing.T) {
	f := newFake()
	m := start(t, f)
	ctx := context.Background()
	if err := m.Start(ctx, testPlace.Unit, testProperties()); err != nil {
		t.Fatal(err)
	}
	before := f.called("Get ActiveState")
	if err := m.Set(ctx, testPlace.Unit, []systemd.Property{property("TasksMax", uint64(7))}); err != nil {
		t.Fatal(err)
	}
	if n := f.called("Get ActiveState") - before; n != 1 {
		t.Errorf("a change asks for %d properties, of which one is to know that it has been written", n)
	}
}
