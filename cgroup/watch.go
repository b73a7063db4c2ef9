package cgroup

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/berth-runtime/berth/internal/inotify"
	"golang.org/x/sys/unix"
)

// Kind is what happened to a group; kinds are bits, to be asked for together.
type Kind uint32

// The kinds of events.
const (
	OOM          Kind = 1 << iota // an allocation failed at the limit
	OOMKill                       // a process was killed for it
	OOMGroupKill                  // the whole group was
	MemoryLow                     // reclaimed although below memory.low
	MemoryHigh                    // slowed down for being above memory.high
	MemoryMax                     // about to exceed memory.max
	SwapMax                       // the swap limit was hit
	SwapFail                      // swapping failed, because of the limit or a lack of space
	PidsMax                       // a fork failed at the limit
	HugetlbMax                    // an allocation of huge pages failed at the limit
	Populated                     // the first process came
	Empty                         // the last process went
	Frozen                        // all processes stand
	Thawed                        // they go on
	Stalled                       // a pressure trigger fired
	Removed                       // the group is gone; nothing comes after this
)

var kindNames = [...]string{"oom", "oom-kill", "oom-group-kill", "memory-low", "memory-high", "memory-max", "swap-max",
	"swap-fail", "pids-max", "hugetlb-max", "populated", "empty", "frozen", "thawed", "stalled", "removed"}

func (k Kind) String() string {
	text := ""
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			if text != "" {
				text += ","
			}
			text += name
		}
	}
	return text
}

// Event is something that happened to a watched group. The kernel joins what
// happens in quick succession: New tells how often since the last event.
type Event struct {
	Group *Group
	Kind  Kind
	New   uint64
	Total uint64 // since the group was made; 0 where the kernel does not count
	// Detail is the page size of HugetlbMax, and the resource of Stalled.
	Detail string
}

// Watcher tells of events in any number of groups, with one inotify and one
// epoll descriptor (and one more for each version 1 memory group, and for each
// pressure trigger). Nothing is polled, but for one thing: version 1 tells that
// a group ran out of memory before it kills, and never that it did; so the
// count of kills is looked at a few times within the second after.
type Watcher struct {
	events  chan Event
	closed  chan struct{}
	running sync.WaitGroup

	file    *os.File // owns epoll
	raw     syscall.RawConn
	epoll   int
	inotify int

	mu       sync.Mutex
	groups   map[*Group]*watched
	byWatch  map[int32][]*source // by inotify's number
	byFD     map[int32]*source   // by descriptor in epoll
	pressure *pressureWatch
	ended    bool
}

// watched is what is known of a group.
type watched struct {
	group   *Group
	kinds   Kind
	sources []*source
}

// NewWatcher makes a watcher. Close it.
func NewWatcher() (*Watcher, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	inotify, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		unix.Close(epoll)
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	w := &Watcher{
		events: make(chan Event), closed: make(chan struct{}),
		epoll: epoll, inotify: inotify,
		groups: map[*Group]*watched{}, byWatch: map[int32][]*source{}, byFD: map[int32]*source{},
	}
	// Non-blocking, so that Go's own poller waits for it and no thread does.
	unix.SetNonblock(epoll, true)
	w.file = os.NewFile(uintptr(epoll), "epoll")
	if w.raw, err = w.file.SyscallConn(); err == nil {
		err = w.add(inotify, unix.EPOLLIN)
	}
	if err != nil {
		unix.Close(inotify)
		w.file.Close()
		return nil, err
	}
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		w.loop()
	}()
	return w, nil
}

// Events is where the events come, until Close. If they are not received, the
// kernel keeps counting.
func (w *Watcher) Events() <-chan Event { return w.events }

// Close ends the watching and gives all descriptors back.
func (w *Watcher) Close() error {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return nil
	}
	w.ended = true
	w.mu.Unlock()
	close(w.closed)
	w.file.SetReadDeadline(time.Unix(1, 0)) // wakes the loop
	if w.pressure != nil {
		unix.Write(w.pressure.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}
	w.running.Wait()
	close(w.events)
	for _, s := range w.byFD {
		unix.Close(s.fd)
	}
	if w.forgetPressure(nil); w.pressure != nil {
		unix.Close(w.pressure.wake)
		unix.Close(w.pressure.epoll)
	}
	unix.Close(w.inotify)
	return w.file.Close()
}

// Watch asks for events of a group from now on, and tells which of the kinds
// this host can give: on version 1 without version 2 beside it there is no word
// of freezing, and of processes only when the last of them ends; PidsMax comes
// there with the next other event, and is not among those that it can give.
// A second Watch of the same group replaces the first.
func (w *Watcher) Watch(g *Group, kinds Kind) (Kind, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return 0, os.ErrClosed
	}
	entry := w.groups[g]
	if entry == nil {
		entry = &watched{group: g}
		w.groups[g] = entry
	}
	for _, s := range entry.sources {
		w.drop(s)
	}
	entry.sources = nil
	entry.kinds = kinds
	var can Kind
	for _, s := range g.sources(kinds) {
		s.entry = entry
		started, err := w.start(s)
		if err != nil {
			w.forget(g)
			return 0, &Error{Op: "watch", Path: s.path, Err: err}
		}
		if started {
			if !s.silent() || s.trigger == byEventfd {
				can |= s.kinds() & kinds
			}
			entry.sources = append(entry.sources, s)
		}
	}
	return can, nil
}

// Forget ends the watching of one group.
func (w *Watcher) Forget(g *Group) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(g)
	w.forgetPressure(g)
}

func (w *Watcher) forget(g *Group) {
	entry := w.groups[g]
	if entry == nil {
		return
	}
	delete(w.groups, g)
	for _, s := range entry.sources {
		w.drop(s)
	}
	entry.sources = nil
}

func (w *Watcher) add(fd int, events uint32) error {
	event := unix.EpollEvent{Events: events, Fd: int32(fd)}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &event))
}

// loop waits and reports.
func (w *Watcher) loop() {
	var ready [64]unix.EpollEvent
	for {
		count := 0
		err := w.raw.Read(func(fd uintptr) bool {
			n, err := unix.EpollWait(int(fd), ready[:], 0)
			count = max(n, 0)
			return n > 0 || err != nil && err != unix.EINTR
		})
		select {
		case <-w.closed:
			return
		default:
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return // only a closed file ends here, and that is Close
		}
		for _, event := range w.collect(ready[:count]) {
			if !w.send(event) {
				return
			}
		}
	}
}

// send hands an event over; false once the Watcher is closed.
func (w *Watcher) send(event Event) bool {
	select {
	case w.events <- event:
		return true
	case <-w.closed:
		return false
	}
}

// collect finds out what happened, and sets the time of the next look at
// version 1's counts of kills.
func (w *Watcher) collect(ready []unix.EpollEvent) []Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var events []Event
	for _, r := range ready {
		if int(r.Fd) == w.inotify {
			for _, s := range w.readInotify() {
				events = w.check(s, events)
			}
			continue
		}
		if s := w.byFD[r.Fd]; s != nil {
			events = w.fired(s, events)
		}
	}
	return w.lookAgain(events)
}

// readInotify gives the sources whose files changed.
func (w *Watcher) readInotify() []*source {
	var changed []*source
	var buf [4096]byte
	for {
		n, err := readFD(w.inotify, buf[:])
		if err != nil || n <= 0 {
			return changed
		}
		for _, event := range inotify.Events(buf[:n]) {
			if event.Mask&unix.IN_Q_OVERFLOW != 0 {
				changed = w.everything(changed)
				continue
			}
			for _, s := range w.byWatch[event.Watch] {
				if s.trigger == byRemoval && s.name != event.Name {
					continue
				}
				changed = append(changed, s)
			}
		}
	}
}

// everything gives all sources, but for directories that are still there: the
// kernel had no room for all that it had to say.
func (w *Watcher) everything(changed []*source) []*source {
	for _, sources := range w.byWatch {
		for _, s := range sources {
			if s.trigger == byRemoval {
				if _, err := os.Lstat(s.node.full("")); err == nil {
					continue
				}
			}
			changed = append(changed, s)
		}
	}
	return changed
}
