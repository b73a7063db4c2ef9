package integration

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/containerd"
)

// Shims are upgraded again and again under containerd, which sees nothing of it: each line that
// containers and execs write comes once and in its order, each wait is answered, and so is each
// event.
func TestUpgradedLive(t *testing.T) {
	containerd.Each(t, func(t *testing.T, r containerd.Release) {
		t.Run("container", func(t *testing.T) { upgradedLive(t, newDaemon(t, r)) })
		t.Run("namespace", func(t *testing.T) { upgradedLive(t, newDaemon(t, r, "BERTH_SHIM_GROUPING=namespace")) })
	})
}

// counts writes numbered lines until it is told to end, and then how many there were.
func counts(status int) []string {
	return []string{"sh", "-c", fmt.Sprintf("trap s=1 TERM; i=0; while [ -z \"$s\" ]; do i=$((i+1)); echo $i; sleep 0.02; done; echo end $i; exit %d", status)}
}

// wantCount checks what counts has written; a terminal ends lines in its own way.
func wantCount(t *testing.T, who, got string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(strings.ReplaceAll(got, "\r\n", "\n"), "\n"), "\n")
	for i, line := range lines {
		want := fmt.Sprint(i + 1)
		if i == len(lines)-1 {
			want = fmt.Sprint("end ", i)
		}
		if line != want {
			t.Errorf("line %d of %s, %d in all, is %q, want %q", i+1, who, len(lines), line, want)
			return
		}
	}
}

func upgradedLive(t *testing.T, d *daemon) {
	shims := ""
	countersLive(t, d, rounds(6, 100), nil, func() {
		shims = fmt.Sprint(d.Shims())
		upgrades, period := 0, time.Duration(rounds(4, 600))*time.Second
		for end := time.Now().Add(period); time.Now().Before(end); upgrades++ {
			d.UpgradeShims()
			time.Sleep(200 * time.Millisecond)
		}
		t.Logf("%d upgrades", upgrades)
		if now := fmt.Sprint(d.Shims()); now != shims {
			t.Errorf("shims %s have become %s", shims, now)
		}
	})
}

// countersLive has containers and execs write numbered lines, some to terminals, while something is
// done to their shims, and then end; and looks whether each line, status and event has come once
// and in its order. beside, if not nil, does more with each container meanwhile, until done is
// closed, and gives the events of that.
func countersLive(t *testing.T, d *daemon, n int, beside func(b *box, done <-chan struct{}) []string, disturb func()) {
	events := d.tap()
	type counter struct {
		*box
		out, exec stdio
		ended     [2]chan uint32
		events    chan []string
	}
	all := make([]*counter, n)
	done := make(chan struct{})
	for i := range all {
		terminal := i%3 == 2
		c := &counter{box: d.define("", args(counts(i%50+10)...), func(s *specs.Spec) { s.Process.Terminal = terminal })}
		all[i] = c
		c.out, c.exec = d.pipes(c.id, terminal), d.pipes(c.id+"e", false)
		if err := c.create(c.out); err != nil {
			t.Fatal(err)
		}
		if err := c.start(); err != nil {
			t.Fatal(err)
		}
		if err := c.box.exec("e", c.exec, counts(i%50+100)...); err != nil {
			t.Fatal(err)
		}
		for k, id := range []string{"", "e"} {
			c.ended[k] = make(chan uint32, 1)
			go func() { c.ended[k] <- c.wait(id) }()
		}
		c.events = make(chan []string, 1)
		if beside == nil {
			c.events <- nil
			continue
		}
		go func() { c.events <- beside(c.box, done) }()
	}
	disturb()
	close(done)

	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() {
			between := <-c.events
			for k, id := range []string{"e", ""} {
				if _, err := d.tasks().Kill(d.Context(), &tasks.KillRequest{ContainerID: c.id, ExecID: id, Signal: 15}); err != nil {
					t.Errorf("end %s of %s: %v", id, c.id, err)
				}
				if got, want := <-c.ended[1-k], uint32(i%50+100-90*k); got != want {
					t.Errorf("status of %q of %s: %d, want %d", id, c.id, got, want)
				}
				if id == "e" {
					if _, err := c.deleteExec("e"); err != nil {
						t.Error(err)
					}
				}
			}
			c.remove()
			wantCount(t, c.id, c.out.output[0].wait())
			wantCount(t, "the exec of "+c.id, c.exec.output[0].wait())
			want := append([]string{"create", "start", "exec-added e", "exec-started e"}, between...)
			events.want(t, c.id, append(want, fmt.Sprintf("exit e %d", i%50+100), "delete e", fmt.Sprintf("exit %s %d", c.id, i%50+10), "delete")...)
		})
	}
	wg.Wait()
}
