package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/berth-runtime/berth/test/containerd"
)

// Shims with keepers take a new program every second and are killed at random between, while their
// containers write, and programs come and go in them. containerd sees nothing of it: no call fails,
// each line comes once and in its order, and so does each event.
func TestKilledLive(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("there are keepers on amd64 alone")
	}
	containerd.Each(t, func(t *testing.T, r containerd.Release) {
		t.Run("container", func(t *testing.T) { killedLive(t, newDaemon(t, r, "BERTH_SHIM_KEEPER=1")) })
		t.Run("namespace", func(t *testing.T) {
			killedLive(t, newDaemon(t, r, "BERTH_SHIM_KEEPER=1", "BERTH_SHIM_GROUPING=namespace"))
		})
	})
}

func killedLive(t *testing.T, d *daemon) {
	var execs atomic.Int64
	beside := func(b *box, done <-chan struct{}) (events []string) {
		for i := 0; ; i++ {
			select {
			case <-done:
				return events
			default:
			}
			id, status := fmt.Sprint("x", i), uint32(i%100)
			s := d.pipes(b.id+id, false)
			if err := b.exec(id, s, "sh", "-c", fmt.Sprintf("echo %s; exit %d", id, status)); err != nil {
				t.Errorf("exec %s of %s: %v", id, b.id, err)
				return events
			}
			if got := b.wait(id); got != status {
				t.Errorf("exec %s of %s ends with %d", id, b.id, got)
			}
			if got := s.output[0].wait(); got != id+"\n" {
				t.Errorf("exec %s of %s writes %q", id, b.id, got)
			}
			if _, err := b.deleteExec(id); err != nil {
				t.Errorf("delete exec %s of %s: %v", id, b.id, err)
			}
			s.writer.Close()
			for _, path := range []string{s.in, s.out, s.err} {
				os.Remove(path)
			}
			events = append(events, "exec-added "+id, "exec-started "+id, fmt.Sprintf("exit %s %d", id, status), "delete "+id)
			execs.Add(1)
		}
	}
	kills, upgrades := 0, 0
	countersLive(t, d, rounds(6, 200), beside, func() {
		keepers := d.keepers()
		before := keepersOf(keepers)
		killed := make(map[int][]time.Time) // by keeper
		period := time.Duration(rounds(6, 600)) * time.Second
		next := time.Now()
		const least = 3 // also on a machine that is so busy that there were fewer by then
		for end := time.Now().Add(period); (time.Now().Before(end) || kills < least || upgrades < least) && !t.Failed(); {
			if time.Now().After(next) {
				d.upgradeAll()
				upgrades++
				next = time.Now().Add(time.Second)
			}
			time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
			// A shim that is killed five times in a minute is given up.
			keeper := before[rand.IntN(len(before))]
			if list := killed[keeper]; len(list) >= 4 && time.Since(list[len(list)-4]) < 65*time.Second {
				continue
			}
			if shim := d.keepers()[keeper]; shim != 0 && syscall.Kill(shim, syscall.SIGKILL) == nil {
				killed[keeper] = append(killed[keeper], time.Now())
				kills++
			}
		}
		if after := keepersOf(d.keepers()); !slices.Equal(before, after) {
			t.Errorf("keepers %v have become %v", before, after)
		}
	})
	t.Logf("%d kills, %d upgrades, %d execs between them", kills, upgrades, execs.Load())
}

func keepersOf(pairs map[int]int) (list []int) {
	for keeper := range pairs {
		list = append(list, keeper)
	}
	slices.Sort(list)
	return list
}

// keepers are the keepers with the shim of each, 0 while that is being executed. What a shim forks
// looks like one for a moment.
func (d *daemon) keepers() map[int]int {
	parents := make(map[int]int)
	for _, pid := range d.Shims() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue
		}
		_, after, _ := strings.Cut(string(text), "\nPPid:")
		parent := 0
		fmt.Sscan(after, &parent)
		parents[pid] = parent
	}
	pairs := make(map[int]int)
	for pid, parent := range parents {
		if _, forked := parents[parent]; !forked {
			pairs[pid] = max(pairs[pid], 0)
		} else if _, forked := parents[parents[parent]]; !forked {
			pairs[parent] = pid
		}
	}
	return pairs
}
