package containerd

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/berth-runtime/berth/internal/test/wait"
)

// UpgradeShims has all shims of the daemon take their program anew.
func (d *Daemon) UpgradeShims() {
	d.T.Helper()
	out, err := exec.Command(d.Shim, "-address", d.Dir+"/c.sock", "-all", "upgrade").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "shims upgraded") {
		d.T.Fatalf("upgrade: %v\n%s", err, out)
	}
}

// Disturb has shims with keepers take a new program every second, and kills some at random between,
// for a time. The keepers must be the same afterwards.
func (d *Daemon) Disturb(period time.Duration) (kills, upgrades int) {
	d.T.Helper()
	const least = 3 // also on a machine that is so busy that there were fewer by then
	before := keepersOf(d.Keepers())
	if len(before) == 0 {
		d.T.Fatal("there are no shims with keepers")
	}
	killed := make(map[int][]time.Time) // by keeper
	next := time.Now()
	for end := time.Now().Add(period); (time.Now().Before(end) || kills < least || upgrades < least) && !d.T.Failed(); {
		if time.Now().After(next) {
			d.UpgradeShims()
			upgrades++
			next = time.Now().Add(time.Second)
		}
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
		// A shim that is killed five times in a minute is given up.
		keeper := before[rand.IntN(len(before))]
		if list := killed[keeper]; len(list) >= 4 && time.Since(list[len(list)-4]) < 65*time.Second {
			continue
		}
		if shim := d.Keepers()[keeper]; shim != 0 && syscall.Kill(shim, syscall.SIGKILL) == nil {
			killed[keeper] = append(killed[keeper], time.Now())
			kills++
		}
	}
	// One reading may be of an instant at which a shim was just being made.
	wait.Until(d.T, fmt.Sprintf("the keepers are %v, as before", before), func() bool { return slices.Equal(before, keepersOf(d.Keepers())) })
	return kills, upgrades
}

func keepersOf(pairs map[int]int) (list []int) {
	for keeper := range pairs {
		list = append(list, keeper)
	}
	slices.Sort(list)
	return list
}

// Keepers are the keepers with the shim of each, 0 while that is being executed. What a shim forks
// looks like one for a moment.
func (d *Daemon) Keepers() map[int]int {
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
