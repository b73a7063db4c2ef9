package cgroup

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// PressureTrigger asks to be told when work stood still for Stall within a
// Window (500 ms to 10 s; without CAP_SYS_RESOURCE only multiples of 2 s).
type PressureTrigger struct {
	Resource string // "cpu", "memory", "io" or "irq"
	Full     bool   // all tasks stood still, and not just some
	Stall    time.Duration
	Window   time.Duration
}

// WatchPressure adds a pressure trigger to a group; its events are Stalled. It
// takes PSI and a version 2 directory.
func (w *Watcher) WatchPressure(g *Group, t PressureTrigger) error {
	u := g.unified()
	if u == nil {
		return &Error{Op: "watch the pressure of", Path: g.path, Err: ErrNoController, Hint: "it takes a version 2 group"}
	}
	line := "some"
	if t.Full {
		line = "full"
	}
	line += " " + strconv.FormatInt(t.Stall.Microseconds(), 10) + " " + strconv.FormatInt(t.Window.Microseconds(), 10)
	path := u.full(t.Resource + ".pressure")
	fd, err := openAt(unix.AT_FDCWD, path, unix.O_RDWR|unix.O_NONBLOCK)
	if err == nil {
		if err = writeFD(fd, line); err != nil {
			unix.Close(fd)
		}
	}
	if err != nil {
		e := &Error{Op: "write", Path: path, Value: line, Err: err}
		switch err {
		case unix.EINVAL:
			e.Hint = "the window is 500 ms to 10 s and not below the stall; without CAP_SYS_RESOURCE it is a multiple of 2 s"
		case unix.ENOENT, unix.EOPNOTSUPP:
			e.Hint = "this kernel has no PSI, or it is off: boot with psi=1"
		}
		return e
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err = w.startPressure(); err == nil {
		event := unix.EpollEvent{Events: unix.EPOLLPRI, Fd: int32(fd)}
		err = os.NewSyscallError("epoll_ctl", unix.EpollCtl(w.pressure.epoll, unix.EPOLL_CTL_ADD, fd, &event))
	}
	if err != nil {
		unix.Close(fd)
		return err
	}
	w.pressure.triggers[int32(fd)] = Event{Group: g, Kind: Stalled, New: 1, Detail: t.Resource}
	return nil
}

// pressureWatch waits for pressure triggers in a thread of its own. The kernel
// clears a trigger when it is polled, and an epoll descriptor inside of Go's
// own is polled once by that one, so that nothing would be left for us.
type pressureWatch struct {
	epoll, wake int
	triggers    map[int32]Event // what to say for a descriptor
}

func (w *Watcher) startPressure() error {
	if w.ended {
		return os.ErrClosed
	}
	if w.pressure != nil {
		return nil
	}
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err == nil {
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(wake)}
		err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, wake, &event)
	}
	if err != nil {
		unix.Close(wake)
		unix.Close(epoll)
		return os.NewSyscallError("eventfd", err)
	}
	w.pressure = &pressureWatch{epoll: epoll, wake: wake, triggers: map[int32]Event{}}
	w.running.Add(1)
	go func() {
		defer w.running.Done()
		w.pressureLoop()
	}()
	return nil
}

func (w *Watcher) pressureLoop() {
	var ready [16]unix.EpollEvent
	for {
		n, err := unix.EpollWait(w.pressure.epoll, ready[:], -1)
		if err == unix.EINTR {
			continue
		}
		for _, r := range ready[:max(n, 0)] {
			if event, stalled := w.stalled(r); stalled && !w.send(event) {
				return
			}
		}
		select {
		case <-w.closed:
			return
		default:
		}
	}
}

// stalled gives the event of a trigger that fired, and ends the one of a group
// that is gone.
func (w *Watcher) stalled(r unix.EpollEvent) (Event, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	event, known := w.pressure.triggers[r.Fd]
	if known && r.Events&unix.EPOLLERR != 0 {
		delete(w.pressure.triggers, r.Fd)
		unix.Close(int(r.Fd))
		known = false
	}
	return event, known
}

// forgetPressure ends the triggers of a group; all of them with nil.
func (w *Watcher) forgetPressure(g *Group) {
	if w.pressure == nil {
		return
	}
	for fd, event := range w.pressure.triggers {
		if g == nil || event.Group == g {
			delete(w.pressure.triggers, fd)
			unix.Close(int(fd))
		}
	}
}
