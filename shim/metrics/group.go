// Package metrics reads a container's cgroup for the shim: its counters, as the
// messages that containerd's clients take, and its kills for want of memory.
//
// On a host with version 2 alone the message is io.containerd.cgroups.v2.Metrics,
// on all others that of version 1; nothing else is accepted by containerd's
// CRI. The package only reads cgroups, through this module's own library.
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
	"github.com/berth-runtime/berth/shim/wire"
)

// controllers are those that a message has room for.
var controllers = []string{"cpu", "cpuacct", "memory", "pids", "blkio", "io", "hugetlb", "rdma"}

// host is this machine's cgroup hierarchies, looked at once.
var host = sync.OnceValues(cgroup.Detect)

// Group is a container's cgroup. It stays open, for it is read after its
// processes have ended, until Close.
type Group struct {
	host  *cgroup.Host
	group *cgroup.Group
}

// OfProcess gives the cgroup that a process is in.
func OfProcess(pid int) (*Group, error) {
	h, err := host()
	if err != nil {
		return nil, err
	}
	var here []string
	for _, name := range controllers {
		if h.Controller(name) != nil {
			here = append(here, name)
		}
	}
	g, err := h.OfProcess(pid, cgroup.Only(here...))
	if err != nil {
		return nil, fmt.Errorf("find the cgroup of process %d: %w", pid, err)
	}
	return &Group{h, g}, nil
}

// Close lets go of the cgroup.
func (g *Group) Close() { g.group.Close() }

// Stats reads the counters into a message of the host's version.
func (g *Group) Stats() (typeURL string, message []byte, err error) {
	s, err := g.group.Stats(cgroup.CPU, cgroup.Memory, cgroup.IO, cgroup.Pids, cgroup.Hugetlb, cgroup.RDMA)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil, fmt.Errorf("%w: %w", engine.ErrNoStats, err)
	}
	if err != nil {
		return "", nil, err
	}
	// Systemd removes a unit's cgroup as soon as it is empty, in the middle of the
	// reading, too: what is missing then is not zero.
	if dir := g.group.Directory("memory"); dir != "" && unix.Access(dir, unix.F_OK) == unix.ENOENT {
		return "", nil, engine.ErrNoStats
	}
	if g.host.Mode() == cgroup.Unified {
		return wire.MetricsV2URL, wire.Marshal(v2(s)), nil
	}
	return wire.MetricsV1URL, wire.Marshal(v1(s)), nil
}

// OOMKills reads the count of kills for want of memory. The kernel raises it
// before it sends the signal, so whoever has seen the end finds it there.
func (g *Group) OOMKills() (uint64, error) {
	text, err := g.group.ReadFile("memory.events")
	if errors.Is(err, os.ErrNotExist) {
		text, err = g.group.ReadFile("memory.oom_control") // version 1, which counts since Linux 4.13
	}
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if count, is := strings.CutPrefix(line, "oom_kill "); is {
			return strconv.ParseUint(strings.TrimSpace(count), 10, 64)
		}
	}
	return 0, fmt.Errorf("%w: this kernel does not count kills for want of memory", engine.ErrNoStats)
}

// watcher serves all containers of the shim.
var watcher struct {
	sync.Mutex
	*cgroup.Watcher
	told map[*cgroup.Group]func(uint64)
}

// WatchOOM calls risen with the count of kills when it has risen, until stop is called.
func (g *Group) WatchOOM(risen func(kills uint64)) (stop func(), err error) {
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
	w.told[g.group] = risen
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
