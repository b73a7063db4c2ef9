package reliability

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// number is a number of the environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// side does something n times, so many at a time.
func side(n, atATime int, do func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(n, atATime) {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := int(next.Add(1)); i <= n; i = int(next.Add(1)) {
				do(i - 1)
			}
		}()
	}
	group.Wait()
}

// Rounds of create, start, exec, kill and delete, 8 at a time. The end of the test looks for what
// is left; BERTH_ROUNDS says how many.
func TestSoak(t *testing.T) {
	rounds := number(t, "BERTH_ROUNDS", 100)
	b := harness.New(t)
	const atATime = 8
	pool := make(chan *harness.Container, atATime)
	for range atATime {
		pool <- b.Container("/inside", "hang")
	}
	groups := func() int {
		n := 0
		text, err := os.ReadFile("/proc/cgroups")
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range strings.Fields(string(text)) {
			if v, err := strconv.Atoi(word); err == nil {
				n += v
			}
		}
		return n
	}
	before := groups()
	side(rounds, atATime, func(int) {
		c := <-pool
		defer func() { pool <- c }()
		c.Create().Start()
		c.Exec(nil, "/bin/true").OK(t)
		c.Kill("KILL")
		c.WaitExit()
		c.Delete()
	})
	// The kernel counts those that it has still to free too, which takes it a while: a leak would
	// be one for each round and hierarchy.
	wait.Until(t, fmt.Sprintf("no more cgroups than before, %d, but for one of each round", before), func() bool { return groups()-before <= rounds })
	b.Berth("list", "-q").OK(t)
	t.Logf("%d rounds", rounds)
	harness.Report(t, "rounds", rounds)
}

// Many containers at once, started, entered, paused, updated and removed. BERTH_STRESS says how
// many; make stress has 500.
func TestStress(t *testing.T) {
	n := number(t, "BERTH_STRESS", 24)
	b := harness.New(t)
	const atATime = 8
	all := make([]*harness.Container, n)
	for i := range all {
		all[i] = b.Container("/bin/sleep", "100000")
	}
	before := available(t)
	phase := func(name string, do func(c *harness.Container)) {
		begin := time.Now()
		side(n, atATime, func(i int) { do(all[i]) })
		t.Logf("%-8s %5d containers in %6.2f s: %6.1f each second", name, n, time.Since(begin).Seconds(), float64(n)/time.Since(begin).Seconds())
	}
	phase("start", func(c *harness.Container) { c.RunDetached() })
	t.Logf("memory   %.2f MB for each", float64(before-available(t))/float64(n)/(1<<20))
	phase("exec", func(c *harness.Container) { c.Exec(nil, "/bin/true").OK(t) })
	phase("pause", func(c *harness.Container) { c.Command("pause", nil).Run().OK(t) })
	phase("update", func(c *harness.Container) { c.Command("update", []string{"--pids-limit", "50"}).Run().OK(t) })
	phase("resume", func(c *harness.Container) { c.Command("resume", nil).Run().OK(t) })
	if got := len(b.Berth("list", "-q").OK(t).Lines()); got != n {
		t.Errorf("list has %d of %d", got, n)
	}
	phase("remove", func(c *harness.Container) {
		c.Delete("--force")
		c.WaitExit()
	})
	if !t.Failed() {
		t.Log("failures 0")
	}
	harness.Report(t, "containers at once", n)
}

// available is the memory that the machine could still give, in bytes.
func available(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "MemAvailable:")
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
