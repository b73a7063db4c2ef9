package cgroup

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// start arms a source and takes its present values as those that are known;
// false if this kernel has not got it.
func (w *Watcher) start(s *source) (bool, error) {
	var err error
	switch s.trigger {
	case byChange, byRemoval:
		var mask uint32 = unix.IN_MODIFY
		if s.trigger == byRemoval {
			mask = unix.IN_DELETE | unix.IN_ONLYDIR
		}
		var watch int
		watch, err = unix.InotifyAddWatch(w.inotify, s.path, mask)
		if err == nil {
			s.watch = int32(watch)
			w.byWatch[s.watch] = append(w.byWatch[s.watch], s)
		}
	case byEventfd:
		err = w.startEventfd(s)
	case byExit:
		err = w.startExit(s)
	}
	if err == unix.ENOENT {
		return false, nil
	}
	if err != nil {
		w.drop(s)
		return false, err
	}
	if len(s.rules) > 0 {
		if _, err := s.read(); err != nil && !removed(err) {
			w.drop(s)
			return false, err
		}
	}
	return true, nil
}

// startEventfd registers for out-of-memory notices: an event descriptor and
// one of memory.oom_control are written to cgroup.event_control (the kernel's
// cgroup-v1/memory.rst, 10).
func (w *Watcher) startEventfd(s *source) error {
	control, err := openAt(unix.AT_FDCWD, s.path, unix.O_RDONLY)
	if err != nil {
		return err
	}
	defer unix.Close(control)
	if s.fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return err
	}
	text := strconv.Itoa(s.fd) + " " + strconv.Itoa(control)
	err = writeFile(unix.AT_FDCWD, s.node.full("cgroup.event_control"), text)
	if err == nil {
		err = w.add(s.fd, unix.EPOLLIN)
	}
	if err == nil {
		w.byFD[int32(s.fd)] = s
	}
	return err
}

// startExit waits for the end of one process of the group; the group is not
// empty before that.
func (w *Watcher) startExit(s *source) error {
	for {
		pids, err := s.entry.group.procsOf(s.node, true)
		if err != nil || len(pids) == 0 {
			return err
		}
		fd, err := unix.PidfdOpen(pids[0], 0)
		if err == unix.ESRCH {
			continue
		}
		if err != nil {
			return err
		}
		s.fd = fd
		w.byFD[int32(fd)] = s
		return w.add(fd, unix.EPOLLIN)
	}
}

// drop disarms a source.
func (w *Watcher) drop(s *source) {
	if s.watch >= 0 {
		left := slices.DeleteFunc(w.byWatch[s.watch], func(other *source) bool { return other == s })
		if len(left) > 0 {
			w.byWatch[s.watch] = left
		} else {
			delete(w.byWatch, s.watch)
			unix.InotifyRmWatch(w.inotify, uint32(s.watch)) // fails where the kernel did it
		}
		s.watch = -1
	}
	w.closeFD(s)
	s.when = time.Time{}
}

func (w *Watcher) closeFD(s *source) {
	if s.fd >= 0 {
		// Closing takes it out of epoll too, since no one else has it.
		delete(w.byFD, int32(s.fd))
		unix.Close(s.fd)
		s.fd = -1
	}
}

// change is how a rule's value moved.
type change struct {
	rule        rule
	from, value uint64
}

// read takes the file's present values and gives what changed.
func (s *source) read() ([]change, error) {
	var buf [1024]byte
	text, err := readRecord(unix.AT_FDCWD, s.path, buf[:])
	if err != nil {
		if gone(err) {
			err = os.ErrNotExist
		}
		return nil, err
	}
	var changes []change
	for key, value := range flatKeyed(text) {
		for i, r := range s.rules {
			if r.key == key && value != s.last[i] {
				changes = append(changes, change{r, s.last[i], value})
				s.last[i] = value
			}
		}
	}
	return changes, nil
}

func removed(err error) bool { return errors.Is(err, os.ErrNotExist) }

// check reads a source that changed and adds what happened.
func (w *Watcher) check(s *source, events []Event) []Event {
	entry := s.entry
	if w.groups[entry.group] != entry {
		return events // forgotten while this was on its way
	}
	if s.trigger == byRemoval {
		// The name may have been recreated since, by another.
		return w.gone(entry, events)
	}
	changes, err := s.read()
	if err != nil {
		if removed(err) {
			return w.gone(entry, events)
		}
		return events
	}
	add := func(kind Kind, fresh, total uint64) {
		if kind&entry.kinds != 0 {
			events = append(events, Event{Group: entry.group, Kind: kind, New: fresh, Total: total, Detail: s.detail})
		}
	}
	for _, c := range changes {
		switch {
		case c.rule.count != 0 && c.value > c.from:
			add(c.rule.count, c.value-c.from, c.value)
		case c.rule.count == 0 && c.value > c.from:
			add(c.rule.up, 1, 0)
		case c.rule.count == 0:
			add(c.rule.down, 1, 0)
		}
	}
	return w.checkSilent(s, events)
}

// silent reports whether the kernel changes the file without a word: version 1
// when it kills, and when a fork fails (since Linux 6.11).
func (s *source) silent() bool {
	return s.node.Version == 1 && (s.trigger == byEventfd || len(s.rules) > 0 && s.rules[0].count == PidsMax)
}

// checkSilent looks at the silent files of a group when another of them moves.
func (w *Watcher) checkSilent(s *source, events []Event) []Event {
	if s.silent() {
		return events
	}
	for _, other := range slices.Clone(s.entry.sources) {
		if other.silent() {
			events = w.check(other, events)
		}
	}
	return events
}

// gone ends the watching of a group that was removed.
func (w *Watcher) gone(entry *watched, events []Event) []Event {
	w.forget(entry.group)
	if entry.kinds&Removed != 0 {
		events = append(events, Event{Group: entry.group, Kind: Removed, New: 1})
	}
	return events
}

// fired handles a descriptor of epoll.
func (w *Watcher) fired(s *source, events []Event) []Event {
	entry := s.entry
	switch s.trigger {
	case byEventfd:
		var count [8]byte
		readFD(s.fd, count[:])
		if _, err := os.Lstat(s.path); err != nil {
			return w.gone(entry, events) // the kernel signals the removal too
		}
		if entry.kinds&OOM != 0 {
			events = append(events, Event{Group: entry.group, Kind: OOM, New: 1})
		}
		s.again = 0
		events = w.check(s, events)
		s.when = time.Now().Add(time.Millisecond)
	case byExit:
		w.closeFD(s)
		err := w.startExit(s)
		switch {
		case err != nil && gone(err):
			return w.gone(entry, events)
		case err == nil && s.fd < 0 && entry.kinds&Empty != 0:
			events = append(events, Event{Group: entry.group, Kind: Empty, New: 1})
		}
	}
	return events
}

// lookAgain reads version 1's counts of kills some time after an OOM, at
// intervals that double, and sets the time of the next look.
func (w *Watcher) lookAgain(events []Event) []Event {
	now := time.Now()
	var next time.Time
	for _, s := range w.byFD {
		if s.when.IsZero() {
			continue
		}
		if !now.Before(s.when) {
			before := len(events)
			if events = w.check(s, events); len(events) > before || s.again >= 10 {
				s.when = time.Time{}
				continue
			}
			s.again++
			s.when = now.Add(time.Millisecond << s.again)
		}
		if next.IsZero() || s.when.Before(next) {
			next = s.when
		}
	}
	if !w.ended {
		w.file.SetReadDeadline(next)
	}
	return events
}
