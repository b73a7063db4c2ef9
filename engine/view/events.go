package view

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/internal/json"
	"golang.org/x/sys/unix"
)

// An Event is something to be told of a container: that it ran out of memory,
// or, with Stats, how its counters stand, or, with Denied, that its seccomp profile refused a
// system call for the first time.
type Event struct {
	ID     string
	Stats  *Stats
	Denied *container.Denial
}

// JSON writes the event as a line.
func (e *Event) JSON() []byte {
	w := json.NewWriter(make([]byte, 0, 4096), "")
	w.Object()
	switch {
	case e.Stats != nil:
		w.Key("type").String("stats")
	case e.Denied != nil:
		w.Key("type").String("denied")
	default:
		w.Key("type").String("oom")
	}
	w.Key("id").String(e.ID)
	if e.Stats != nil {
		w.Key("data")
		e.Stats.JSON(w)
	}
	if e.Denied != nil {
		w.Key("data")
		e.Denied.JSON(w)
	}
	w.End()
	return append(w.Bytes(), '\n')
}

// Events tells of each time that the container runs out of memory, and of each kind of refused
// system calls if they are explained, as it comes, and of its counters once in an interval. It
// returns when the first process has ended, or tell fails.
func Events(c *container.Container, interval time.Duration, tell func(*Event) error) error {
	if err := c.WantProcess("watch"); err != nil {
		return err
	}
	s, err := c.Config()
	if err != nil {
		return err
	}
	ended, stop, err := ended(c)
	if err != nil {
		return err
	}
	defer stop()
	watch, err := watchMemory(c)
	if err != nil {
		return err
	}
	defer watch.close()
	denials := c.WatchDenials()
	defer denials.Close()
	tellDenied := func() error {
		for _, d := range denials.More() {
			if err := tell(&Event{ID: c.ID, Denied: &d}); err != nil {
				return err
			}
		}
		return nil
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case e := <-watch.events:
			watch.told += e.New
			err = tell(&Event{ID: c.ID})
		case <-denials.Changed:
			err = tellDenied()
		case <-ticker.C:
			stats, countErr := count(c, s)
			if countErr != nil {
				// A process on its way out has lost its namespaces before it is a
				// zombie; the news of its end is on its way to us.
				if errors.Is(countErr, container.ErrNotRunning) || !c.Alive() {
					continue
				}
				return countErr
			}
			err = tell(&Event{ID: c.ID, Stats: stats})
		case <-ended:
			if err := tellDenied(); err != nil {
				return err
			}
			// The kill that ended it may be on its way to us as well: the kernel holds
			// notices of memory.events back for up to 10 ms (cgroup_file_notify).
			if watch.missed(c) {
				return tell(&Event{ID: c.ID})
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// ended gives a channel that closes when the first process has ended.
func ended(c *container.Container) (done <-chan struct{}, stop func(), err error) {
	fd, err := c.Pidfd()
	if err != nil {
		return nil, nil, err
	}
	// Non-blocking, so that Go's poller waits for it and no thread does.
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	raw, err := f.SyscallConn()
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	closed := make(chan struct{})
	go func() {
		_ = raw.Read(func(fd uintptr) bool {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
			n, _ := unix.Poll(fds, 0)
			return n > 0
		})
		close(closed)
	}()
	return closed, func() { f.Close() }, nil
}

// memoryWatch waits for a container to run out of memory.
type memoryWatch struct {
	watcher *cgroup.Watcher
	group   *cgroup.Group
	events  <-chan cgroup.Event
	before  uint64 // kills when the watch began
	told    uint64 // since then
}

func watchMemory(c *container.Container) (*memoryWatch, error) {
	g, err := c.OpenGroup()
	if err != nil {
		return nil, err
	}
	if g == nil {
		return &memoryWatch{}, nil // nothing will be told of its memory
	}
	w := &memoryWatch{group: g}
	w.before, _ = w.kills()
	// Version 1 tells at once that the limit is hit, but not of the kill; version
	// 2 counts both, of which the kill is what matters to a caller.
	kind := cgroup.OOMKill
	if h := g.Host().Controller("memory"); h == nil {
		return w, nil // nothing will ever be told of memory here
	} else if h.Version == 1 {
		kind = cgroup.OOM
	}
	if w.watcher, err = cgroup.NewWatcher(); err != nil {
		return nil, fmt.Errorf("watch the memory of container %s: %w", c.ID, err)
	}
	w.events = w.watcher.Events()
	if _, err := w.watcher.Watch(g, kind); err != nil {
		w.close()
		return nil, fmt.Errorf("watch the memory of container %s: %w", c.ID, err)
	}
	return w, nil
}

// kills is the number of OOM-killed processes. gone says that the cgroup has been removed.
func (w *memoryWatch) kills() (n uint64, gone bool) {
	if w.group == nil {
		return 0, false
	}
	stats, err := w.group.Stats(cgroup.Memory)
	if err != nil || stats.Memory == nil || stats.Memory.Events == nil {
		dir := w.group.Directory("memory")
		return 0, dir != "" && unix.Access(dir, unix.F_OK) == unix.ENOENT
	}
	return value(stats.Memory.Events.OOMKill), false
}

// missed says whether there was a kill of which nothing has been told.
func (w *memoryWatch) missed(c *container.Container) bool {
	kills, gone := w.kills()
	if gone {
		kills, _ = oomLogged(c)
	}
	return kills > w.before+w.told
}

func (w *memoryWatch) close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
	if w.group != nil {
		w.group.Close()
	}
}
