package rootfs

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// MountEntry is one mount of a process, as /proc/PID/mountinfo has it.
type MountEntry struct {
	ID    int
	Root  string // what of its file system is mounted
	Point string
	Type  string
}

// MountsOf lists the mounts of a process.
func MountsOf(pid int) ([]MountEntry, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list the mounts of process %d: %w", pid, err)
	}
	return parseMounts(string(text)), nil
}

// parseMounts reads the lines of proc_pid_mountinfo(5): id, parent, device, root,
// mount point, options, optional fields up to a dash, type. One that can't be
// read is passed over.
func parseMounts(text string) []MountEntry {
	var mounts []MountEntry
	for line := range strings.Lines(text) {
		head, tail, ok := strings.Cut(line, " - ") // spaces in names are escaped
		fields, types := strings.Fields(head), strings.Fields(tail)
		if !ok || len(fields) < 6 || len(types) == 0 {
			continue
		}
		id, err := strconv.Atoi(fields[0])
		if err != nil {
			continue
		}
		mounts = append(mounts, MountEntry{ID: id, Root: unescape(fields[3]), Point: unescape(fields[4]), Type: types[0]})
	}
	return mounts
}

// Mount looks at what lies at a path: the id of the mount that it is on, and the
// file itself.
func (r *Root) Mount(name string) (id int, st unix.Stat_t, err error) {
	fd, err := r.openat2(name, unix.O_PATH)
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
// folder fdinfo (proc_pid_fdinfo(5)).
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
