package integration

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

func TestTwoCreatesOfOneID(t *testing.T) {
	b := harness.New(t)
	c, other := b.Container("/bin/true"), b.Container("/bin/true")
	other.Write()
	first := c.Command("create", nil).Start()
	second := b.Command("create", "--bundle", other.Dir, c.ID).Start()
	won, lost := first.Wait(), second.Wait()
	if won.Code != 0 {
		won, lost = lost, won
	}
	won.OK(t)
	lost.Fails(t, "already exists")
	s := c.State()
	if s.Status != "created" {
		t.Errorf("status %s", s.Status)
	}
	c.PID = s.Pid
	c.Delete("--force")
	c.WaitExit()
}

func TestTwoStartsOfOneContainer(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "echo once >> /mark; exec /inside hang").Create()
	calls := []*harness.Running{}
	for range 4 {
		calls = append(calls, c.Command("start", nil).Start())
	}
	won := 0
	for _, call := range calls {
		if r := call.Wait(); r.Code == 0 {
			won++
		} else {
			r.Fails(t, "cannot start an already running container")
		}
	}
	if won != 1 {
		t.Errorf("%d of 4 starts succeeded", won)
	}
	c.Delete("--force")
	c.WaitExit()
}

// Whichever comes first, delete --force leaves nothing, and start fails or is undone.
func TestStartAgainstDelete(t *testing.T) {
	b := harness.New(t)
	for range 5 {
		c := b.Container("/inside", "hang").Create()
		start, del := c.Command("start", nil).Start(), c.Command("delete", []string{"--force"}).Start()
		del.Wait().OK(t)
		if r := start.Wait(); r.Code != 0 {
			r.Fails(t)
		}
		if status := c.WaitExit(); status.Signal() != unix.SIGKILL {
			t.Errorf("ended with %v", status)
		}
		b.Berth("state", c.ID).Fails(t, "container does not exist")
	}
}

func TestManyAtOnce(t *testing.T) {
	b := harness.New(t)
	var all []*harness.Container
	var calls []*harness.Running
	for range 8 {
		c := b.Container("/bin/true")
		all = append(all, c)
		calls = append(calls, c.Command("run", nil).Start())
	}
	for _, call := range calls {
		call.Wait().OK(t)
	}
	for _, c := range all {
		b.Berth("state", c.ID).Fails(t, "container does not exist")
	}
}
