package container

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/berth-runtime/berth/internal/inotify"
	"golang.org/x/sys/unix"
)

// errEnded is what a command says whose hook was ended.
var errEnded = errors.New("the container is being deleted by force")

// askForEnd asks the command that holds the container's lock to end the hook that it waits
// for, and to run no other but those of poststop. The file stays until the directory is
// removed, by that command or by this one.
func (c *Container) askForEnd() error {
	fd, err := unix.Openat(c.dir, endFile, unix.O_WRONLY|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err == nil {
		err = unix.Close(fd) // this is what is watched for
	}
	if err != nil && err != unix.ENOENT { // the directory is being removed
		return fmt.Errorf("container %s: write %s: %w", c.ID, endFile, err)
	}
	return nil
}

// watchForEnd returns a descriptor that can be read when askForEnd has been called, or -1
// where none can be had: nothing but its timeout ends a hook there.
func (c *Container) watchForEnd() int {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err == nil {
		if _, err = unix.InotifyAddWatch(fd, "/proc/self/fd/"+strconv.Itoa(c.dir), unix.IN_CLOSE_WRITE); err == nil {
			return fd
		}
		unix.Close(fd)
	}
	c.runtime.note("container %s: its hooks can't be ended by delete --force: inotify: %v", c.ID, err)
	return -1
}

// askedForEnd reads what a watch has seen, which may be other files of the directory.
func askedForEnd(watch int) bool {
	var buf [4096]byte
	n, err := unix.Read(watch, buf[:])
	if err != nil {
		return false
	}
	return slices.ContainsFunc(inotify.Events(buf[:n]), func(e inotify.Event) bool { return e.Name == endFile })
}
