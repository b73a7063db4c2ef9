package container

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// lockLimit is how long a command waits for another one's lock. Its holder may wait
// for a hook, which may take any time.
const lockLimit = 10 * time.Second

// acquire takes the container's lock, the one of its directory. It goes with the
// descriptor, so a killed command does not keep it.
func (c *Container) acquire() error {
	if err := flock(c.dir, unix.LOCK_EX, lockLimit); err != nil {
		return fmt.Errorf("container %s: lock its state directory: %w", c.ID, err)
	}
	c.locked = true
	if c.gone() {
		return fmt.Errorf("%w: %s (another command has removed it)", ErrNotExist, c.ID)
	}
	return nil
}

// hold takes the lock of a container that is there, and reads again what is on
// record: another command may have changed it. Who has the lock has read it. A create is not
// waited for: it may wait for a hook, and there is nothing yet to start, change or delete.
func (c *Container) hold() error {
	if c.locked {
		return nil
	}
	held, err := c.tryAcquire()
	if err == nil && !held {
		if c.reload() == nil && c.Pid == 0 {
			return fmt.Errorf("container %s: it is being created by %s: try again when it is done, or use delete --force", c.ID, holders(c.dir))
		}
		err = c.acquire()
	}
	if err != nil {
		return err
	}
	err = c.reload()
	if err == nil && c.atStand() {
		err = c.endStandstill()
	}
	if err != nil {
		c.Release()
	}
	return err
}

// gone reports whether the directory was removed by who had its lock before.
func (c *Container) gone() bool {
	var st unix.Stat_t
	return unix.Fstat(c.dir, &st) != nil || st.Nlink == 0
}

// Release gives the lock up, also where a child that has not reached its execve
// still has the descriptor.
func (c *Container) Release() {
	if c.locked {
		_ = unix.Flock(c.dir, unix.LOCK_UN)
		c.locked = false
	}
}

// flock takes a lock, for which it waits no longer than a limit. The kernel's own wait has none.
func flock(fd, how int, limit time.Duration) error {
	var end time.Time
	for step := time.Millisecond; ; step = min(2*step, 16*time.Millisecond) {
		switch err := unix.Flock(fd, how|unix.LOCK_NB); {
		case err == unix.EINTR:
			continue
		case err != unix.EWOULDBLOCK:
			return err
		case end.IsZero():
			end = time.Now().Add(limit)
		case time.Now().After(end):
			return fmt.Errorf("%s has held the lock for %s: try again when it is done", holders(fd), limit)
		}
		_, _ = sys.Poll(nil, int(step.Milliseconds()))
	}
}

// holders names the processes that hold the lock of an open directory, as /proc/locks tells
// (proc_locks(5)): "1: FLOCK  ADVISORY  WRITE 1234 00:1a:5678 0 EOF".
func holders(fd int) string {
	const nobodySeen = "another command"
	var st unix.Stat_t
	text, err := readFileAt(unix.AT_FDCWD, "/proc/locks")
	if err != nil || unix.Fstat(fd, &st) != nil {
		return nobodySeen
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), st.Ino)
	var pids []int
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) != 8 || string(fields[1]) != "FLOCK" || string(fields[5]) != file {
			continue // also one that waits: "->" is a field more
		}
		if pid, err := strconv.Atoi(string(fields[4])); err == nil && pid > 0 { // 0 is of another pid namespace
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return nobodySeen
	}
	return processNames(pids)
}
