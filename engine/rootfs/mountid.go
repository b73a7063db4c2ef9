package rootfs

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Mount looks at what lies at a path: the id of the mount that it is on, and the
// file itself.
func (r *Root) Mount(name string) (id int, st unix.Stat_t, err error) {
	fd, err := r.look(name)
	if err != nil {
		return 0, st, err
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, st, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	id, err = MountID("/proc/self/fdinfo/" + strconv.Itoa(fd))
	return id, st, err
}

// MountID reads what mount the file of a descriptor is on, from its file in a
// directory fdinfo (proc_pid_fdinfo(5)).
func MountID(fdinfo string) (int, error) {
	text, err := os.ReadFile(fdinfo)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strconv.Atoi(strings.TrimSpace(value))
		}
	}
	return 0, fmt.Errorf("%s has no mnt_id", fdinfo)
}
