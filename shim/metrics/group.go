package metrics

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// controllers are those that a message has room for.
var controllers = []string{"cpu", "cpuacct", "memory", "pids", "blkio", "io", "hugetlb", "rdma"}

// host is this machine's cgroup hierarchies, looked at once.
var host = sync.OnceValues(cgroup.Detect)

// Group is a container's cgroup. It stays open, for it is read after its
// processes have ended, until Close; and what it said last is kept, for systemd
// removes a unit's cgroup with the last process, before any process can look at it.
type Group struct {
	host  *cgroup.Host
	group *cgroup.Group // nil where it had gone when this program came

	mu     sync.Mutex
	last   *cgroup.Stats // the last whole reading
	before *wire.Any     // that of the program before this one, until there is one
	kills  uint64        // OOM kills, as far as is known
	closed bool
}

// OfProcess gives the cgroup that a process is in.
func OfProcess(pid int) (*Group, error) {
	h, err := host()
	if err != nil {
		return nil, err
	}
	group, err := h.OfProcess(pid, only(h))
	if err != nil {
		return nil, fmt.Errorf("find the cgroup of process %d: %w", pid, err)
	}
	g := &Group{host: h, group: group}
	if strings.HasSuffix(g.directory(), ".scope") {
		// The first reading may be the only one: a short container takes its unit with it.
		g.last, _ = g.read()
	}
	return g, nil
}

// only are the controllers that this machine has.
func only(h *cgroup.Host) cgroup.Option {
	var here []string
	for _, name := range controllers {
		if h.Controller(name) != nil {
			here = append(here, name)
		}
	}
	return cgroup.Only(here...)
}

// directory is the one whose files say most.
func (g *Group) directory() string { return g.group.Directory("memory") }

// Close lets go of the cgroup; Stats goes on telling what it said last.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed && g.group != nil {
		g.group.Close()
	}
	g.closed = true
}

// Stats reads the counters into a message of the host's version. Of a cgroup
// that has gone they are the last that were read, with the kills known since.
func (g *Group) Stats() (typeURL string, message []byte, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, err := g.read()
	switch {
	case err == nil:
		g.last, g.before = s, nil
	case errors.Is(err, engine.ErrNoStats) && g.before != nil:
		return g.before.TypeURL, g.before.Value, nil
	case !errors.Is(err, engine.ErrNoStats) || g.last == nil:
		return "", nil, err
	}
	typeURL, message = g.message()
	return typeURL, message, nil
}

// message is the last reading. The lock must be held.
func (g *Group) message() (typeURL string, message []byte) {
	if m := g.last.Memory; m != nil && m.Events != nil && m.Events.OOMKill != nil {
		*m.Events.OOMKill = max(*m.Events.OOMKill, g.kills)
	}
	if g.host.Mode() == cgroup.Unified {
		return wire.MetricsV2URL, wire.Marshal(V2(g.last))
	}
	return wire.MetricsV1URL, wire.Marshal(V1(g.last))
}

// read reads all counters, or says ErrNoStats where the cgroup has gone.
func (g *Group) read() (*cgroup.Stats, error) {
	if g.closed || g.group == nil {
		return nil, engine.ErrNoStats
	}
	s, err := g.group.Stats(cgroup.CPU, cgroup.Memory, cgroup.IO, cgroup.Pids, cgroup.Hugetlb, cgroup.RDMA)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w", engine.ErrNoStats, err)
	}
	if err != nil {
		return nil, err
	}
	// It may have gone in the middle of the reading: what is missing then is not zero.
	if dir := g.directory(); dir != "" && unix.Access(dir, unix.F_OK) == unix.ENOENT {
		return nil, engine.ErrNoStats
	}
	return s, nil
}

// OOMKills reads the number of OOM kills. The kernel raises it
// before it sends the signal, so a process that has seen the end finds it there.
func (g *Group) OOMKills() (uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.group == nil {
		return 0, engine.ErrNoStats
	}
	text, err := g.group.ReadFile("memory.events")
	if errors.Is(err, os.ErrNotExist) {
		text, err = g.group.ReadFile("memory.oom_control") // version 1, which counts since Linux 4.13
	}
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if count, is := strings.CutPrefix(line, "oom_kill "); is {
			kills, err := strconv.ParseUint(strings.TrimSpace(count), 10, 64)
			g.kills = max(g.kills, kills)
			return kills, err
		}
	}
	return 0, fmt.Errorf("%w: this kernel does not count OOM kills", engine.ErrNoStats)
}

// watcher serves all containers of the shim.
var watcher struct {
	sync.Mutex
	*cgroup.Watcher
	told map[*cgroup.Group]func(uint64)
}

// WatchOOM calls risen with the count of kills when it has risen, until stop is called.
func (g *Group) WatchOOM(risen func(kills uint64)) (stop func(), err error) {
	if g.group == nil {
		return func() {}, nil
	}
	w := &watcher
	w.Lock()
	defer w.Unlock()
	if w.Watcher == nil {
		if w.Watcher, err = cgroup.NewWatcher(); err != nil {
			return nil, err
		}
		w.told = make(map[*cgroup.Group]func(uint64))
		go dispatch(w.Watcher)
	}
	if _, err := w.Watch(g.group, cgroup.OOMKill); err != nil {
		return nil, err
	}
	w.told[g.group] = func(kills uint64) {
		g.mu.Lock()
		g.kills = max(g.kills, kills)
		g.mu.Unlock()
		risen(kills)
	}
	return func() {
		w.Lock()
		defer w.Unlock()
		w.Forget(g.group)
		delete(w.told, g.group)
	}, nil
}

func dispatch(from *cgroup.Watcher) {
	for e := range from.Events() {
		watcher.Lock()
		tell := watcher.told[e.Group]
		watcher.Unlock()
		if tell != nil && e.Kind&cgroup.OOMKill != 0 {
			tell(e.Total)
		}
	}
}
