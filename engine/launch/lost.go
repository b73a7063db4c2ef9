package launch

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// reapLost ends the fork of a child that was killed before it could tell of it.
// It is our child, waits for us, and no one else would ever reap it: the end of
// the pid namespace that it is in waits for that (pid_namespaces(7)). It is known
// by what it executes, which is one Program's alone.
func (c *Child) reapLost() {
	entries, err := os.ReadDir("/proc")
	if err != nil || c.image == (file{}) {
		return
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == c.Pid || fileAt("/proc/"+e.Name()+"/exe") != c.image {
			continue
		}
		_ = unix.Kill(pid, unix.SIGKILL)
		for ends(pid, killBound) {
			if _, err := unix.Wait4(pid, nil, 0, nil); err != unix.EINTR {
				break
			}
		}
	}
}

// A file is known by its device and its number there.
type file struct{ device, inode uint64 }

// fileAt is the file that a path leads to, the zero one where it leads nowhere.
func fileAt(path string) file {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return file{}
	}
	return file{st.Dev, st.Ino}
}
