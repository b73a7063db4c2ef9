package watch

import (
	"maps"
	"os"
	"path"
	"strings"
	"time"

	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/plan"
	"golang.org/x/sys/unix"
)

// A daemon that restarts has the OOM score of its unit, or of its parent.
// systemd tells of it; elsewhere only its end is told, and the next one is looked
// for. Neither says when the new one has become the program that it is looked for
// by (execve(2)), nor when systemd has set the score that is in the unit.
var lookAgain = []time.Duration{time.Second, 4 * time.Second, 16 * time.Second}

// daemonUnits are the units of the daemons that have an OOM score: those that the
// configuration names, those that were found, and those that go by the name of a
// program, for a daemon that is yet to start.
func daemonUnits(p *plan.Plan) map[string]bool {
	units := map[string]bool{}
	if p.Config.ScoreMode != config.Set {
		return units
	}
	for key := range p.Config.Scores {
		if name := path.Base(key); strings.HasSuffix(name, ".service") || strings.HasSuffix(name, ".scope") {
			units[name] = true
		} else {
			units[name+".service"] = true
		}
	}
	for _, d := range p.Facts.Daemons {
		if d.Unit != "" {
			units[d.Unit] = true
		}
	}
	return units
}

// ends tells of daemons that end, by their pidfds.
type ends struct {
	ended chan struct{}
	known map[process]*os.File
}

type process struct {
	pid   int
	start uint64
}

func newEnds() *ends {
	// One is enough: the receiver looks for all.
	return &ends{ended: make(chan struct{}, 1), known: map[process]*os.File{}}
}

// set says which daemons are watched from now on.
func (e *ends) set(daemons []plan.Daemon, alive func(pid int, start uint64) bool) {
	wanted := map[process]bool{}
	for _, d := range daemons {
		wanted[process{d.PID, d.Start}] = true
	}
	maps.DeleteFunc(e.known, func(p process, f *os.File) bool {
		if !wanted[p] {
			f.Close()
		}
		return !wanted[p]
	})
	for p := range wanted {
		if e.known[p] != nil {
			continue
		}
		// Not blocking, so that a goroutine that waits for it has no thread.
		fd, err := unix.PidfdOpen(p.pid, unix.PIDFD_NONBLOCK)
		if err != nil {
			continue // it has ended; the next look finds the one that came after it
		}
		f := os.NewFile(uintptr(fd), "pidfd")
		if !alive(p.pid, p.start) {
			f.Close()
			continue
		}
		e.known[p] = f
		go e.wait(f)
	}
}

func (e *ends) wait(f *os.File) {
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	// A pidfd is readable when its process has ended (pidfd_open(2)).
	err = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return err == nil && n > 0
	})
	if err != nil {
		return // closed: it is not watched any more
	}
	select {
	case e.ended <- struct{}{}:
	default:
	}
}

func (e *ends) close() { e.set(nil, nil) }
