package enforce

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// A limit that would need too much of an effort is given up: everything that was done for
// it is taken back, and the other limits are set all the same.
func TestLoweringIsGivenUp(t *testing.T) {
	const text = "system-reserved: {memory: 1Gi, pids: 1000}\nsystem-reserved-enforce: true\nreclaim-deadline: 200ms\n"
	for _, c := range []struct{ name, pressure, own, deaf, want string }{
		{"the pressure rises", "some avg10=61.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", "", "",
			"the pressure rose above reclaim-pressure (60%) (memory pressure 61%)"},
		{"nothing can be reclaimed", "some avg10=59.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", "", "MemoryHigh",
			"reclaim-deadline (200ms) is over (memory pressure 59%)"},
		{"we are throttled ourselves", "some avg10=59.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
			"some avg10=79.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=79.00 avg60=0.00 avg300=0.00 total=0\n", "MemoryHigh",
			"berth-node itself is in this cgroup"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := machineWith(t, "unified")
			m.Write("/sys/fs/cgroup/system.slice/memory.current", "4294967296\n")
			m.Write("/sys/fs/cgroup/system.slice/memory.pressure", c.pressure)
			if c.own != "" {
				m.Write(fmt.Sprintf("/proc/%d/cgroup", os.Getpid()), "0::/system.slice/berth-node.service\n")
				m.Write("/sys/fs/cgroup/system.slice/berth-node.service/memory.pressure", c.own)
				m.Write("/sys/fs/cgroup/system.slice/berth-node.service/memory.current", "1\n")
			}
			m.Systemd.Deaf = c.deaf
			attempt(t, m, 0, func(e *Engine) error {
				err := apply(t, m, text)(e)
				var stuck *StuckError
				if !errors.As(err, &stuck) || stuck.Limit != 1<<30 || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "nothing was killed and the former limit holds again") {
					t.Errorf("%v, want something of %q", err, c.want)
				}
				for _, change := range e.Record.Changes {
					if strings.Contains(change.ID(), "MemoryHigh") {
						t.Errorf("on record is still %s", change.ID())
					}
				}
				return nil
			})
			for file, want := range map[string]string{"memory.max": "max", "memory.high": "max", "pids.max": "1000"} {
				if got := m.Read("/sys/fs/cgroup/system.slice/" + file); got != want {
					t.Errorf("%s is %s, want %s", file, got, want)
				}
			}
		})
	}
}
