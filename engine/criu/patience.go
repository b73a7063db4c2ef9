package criu

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// usualIdle is how long criu may do nothing at all. How long it takes as a whole depends on
// how much memory there is to write; but the process that waits for it has the container's lock.
const usualIdle = time.Minute

// ErrStuck is returned where criu did nothing any more, and has been ended.
var ErrStuck = errors.New("it does nothing any more, and was ended")

// await waits for criu's next word, as long as it uses its processor or has something
// for its log.
func (s *Session) await(o *Options) error {
	for before := s.progress(o); ; {
		fds := []unix.PollFd{{Fd: int32(s.socket), Events: unix.POLLIN}}
		n, err := sys.Poll(fds, int(s.idle.Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err != nil || n > 0 {
			return err
		}
		if o != nil && o.LazyPages {
			continue // it serves the pages for as long as the other side takes to ask for them
		}
		now := s.progress(o)
		if now == before {
			_ = unix.Kill(s.Pid, unix.SIGKILL)
			return fmt.Errorf("%w (after %s)", ErrStuck, s.idle)
		}
		before = now
	}
}

// progress is what changes while criu works.
type progress struct {
	stat string
	log  int64
}

func (s *Session) progress(o *Options) progress {
	var p progress
	if text, err := os.ReadFile("/proc/" + strconv.Itoa(s.Pid) + "/stat"); err == nil {
		p.stat = string(text) // the times in it, or its faults, change with whatever it does
	}
	if o == nil {
		return p
	}
	dir := s.images
	if s.work >= 0 {
		dir = s.work
	}
	var st unix.Stat_t
	if unix.Fstatat(dir, o.LogFile, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
		p.log = st.Size
	}
	return p
}

// end waits for criu's end, and sees to it. One that does not even end by SIGKILL, as it waits for
// a file system that does not answer or is in a frozen cgroup, is left to whatever reaps our
// children.
func (s *Session) end() {
	fd, err := unix.PidfdOpen(s.Pid, 0)
	if err == nil {
		ended := within(fd, s.idle)
		if !ended {
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			ended = within(fd, killBound)
		}
		unix.Close(fd)
		if !ended {
			return
		}
	}
	var status unix.WaitStatus
	for {
		if _, err := unix.Wait4(s.Pid, &status, 0, nil); err != unix.EINTR {
			return
		}
	}
}

// killBound is how long criu may take to end that was killed. It may have much memory to give back.
const killBound = 10 * time.Second

// within reports whether the process of a pidfd ends within a time.
func within(pidfd int, limit time.Duration) bool {
	for {
		n, err := sys.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(limit.Milliseconds()))
		if err != unix.EINTR {
			return n > 0
		}
	}
}
