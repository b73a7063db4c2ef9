package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/config/resource"
	"github.com/berth-runtime/berth/node/enforce"
	"github.com/berth-runtime/berth/node/inventory"
	"github.com/berth-runtime/berth/node/machine"
	"github.com/berth-runtime/berth/node/machine/usage"
	"github.com/berth-runtime/berth/node/plan"
)

const (
	// evictEvery is how often it is looked at what is left: memory can go within seconds.
	evictEvery = time.Second
	// evictPause is how long the end of one container may show before the next is killed.
	evictPause = 3 * time.Second
	// evictForget is after when a container that was killed and still runs is meant again.
	evictForget = time.Minute
)

// evictor kills containers when less is left than eviction-hard, where no kubelet does.
type evictor struct {
	d      *Daemon
	killed map[string]time.Time // by cgroup
	last   time.Time
	idle   string // why nothing could be killed, told once
}

// look does what is to be done now.
func (e *evictor) look() {
	p := e.d.plan
	if e.d.conf.Eviction != config.Kill || p.Facts.HasKubelet() || time.Since(e.last) < evictPause {
		return
	}
	for _, name := range []resource.Name{resource.Memory, resource.PIDs} {
		r, ok := p.Resources.Of(name)
		if !ok || r.Eviction == 0 {
			continue
		}
		left, known := e.d.Machine.Available(name, r.Capacity)
		if known && left < r.Eviction {
			e.evict(p, name, left, r.Eviction)
			return
		}
	}
	e.idle = ""
}

// evict kills the first container.
func (e *evictor) evict(p *plan.Plan, name resource.Name, left, wanted int64) {
	signal := map[resource.Name]string{resource.Memory: "memory.available", resource.PIDs: "pid.available"}[name]
	cause := p.Config.EvictionHard[name].Cause
	short := fmt.Sprintf("%s is %s where %s wants %s", signal, name.Human(left), cause, name.Human(wanted))
	maps.DeleteFunc(e.killed, func(_ string, at time.Time) bool { return time.Since(at) > evictForget })
	list, err := candidates(e.d.Machine, p, name)
	list = slices.DeleteFunc(list, func(c candidate) bool { _, dies := e.killed[c.Cgroup]; return dies })
	if err != nil || len(list) == 0 {
		text := short + ", and no container of the workloads can be killed"
		if err != nil {
			text = short + ": " + err.Error()
		}
		if e.idle != signal {
			e.idle = signal
			e.d.journal.write(Event{Name: "failed", Priority: failure, Message: "evict: " + text})
		}
		return
	}
	c := list[0]
	e.last = time.Now()
	e.killed[c.Cgroup] = e.last
	kill := e.d.Kill
	if kill == nil {
		kill = func(cgroup string) error { return enforce.Kill(e.d.Machine, cgroup) }
	}
	if err := kill(c.Cgroup); err != nil {
		e.d.journal.write(Event{Name: "failed", Priority: failure, Message: "evict: " + err.Error()})
		return
	}
	e.d.mu.Lock()
	e.d.state.evictions[name]++
	e.d.mu.Unlock()
	e.d.journal.write(Event{Name: "evicted", Priority: warning,
		Message: fmt.Sprintf("killed %s (%s): %s; of %d containers it was the first, with OOM score %d and %s of %s", c.Name(), c.Cgroup, short, len(list), c.score, name.Human(c.used), name),
		Fields: [][2]string{{"BERTH_NODE_TARGET", c.Cgroup}, {"BERTH_NODE_SETTING", signal}, {"BERTH_NODE_WANTED", name.Format(wanted)},
			{"BERTH_NODE_FOUND", name.Format(left)}, {"BERTH_NODE_CAUSE", cause}}})
}

// candidate is a container that may be killed.
type candidate struct {
	inventory.Container
	score int
	used  int64
}

// candidates lists the containers below the workloads, in the order in which they are killed: the
// highest OOM score adjustment first, which is the priority that their creator gave them, and of
// equals the one that uses most. Those with -1000 are not killed, as by the kernel.
func candidates(m *machine.Machine, p *plan.Plan, name resource.Name) ([]candidate, error) {
	top, ok := p.Place(plan.Workloads)
	if !ok {
		return nil, fmt.Errorf("the workloads have no cgroup of their own: set cgroup-root")
	}
	all, err := inventory.Find(m.Root, m.Cgroups)
	if err != nil {
		return nil, err
	}
	var list []candidate
	for _, c := range all {
		if !c.Within(top.Path) {
			continue
		}
		score, ok := m.ScoreOf(c.Cgroup)
		use, there := usage.Of(m, c.Cgroup)
		if !ok || !there || score == -1000 {
			continue
		}
		used := use.Memory
		if name == resource.PIDs {
			used = use.PIDs
		}
		list = append(list, candidate{c, score, used})
	}
	slices.SortFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.used, a.used), strings.Compare(a.Cgroup, b.Cgroup))
	})
	return list, nil
}
