package container

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/atomicfile"
)

// parentsFile in the root directory names cgroups that were made as parents of a container's, and
// had others' in them when it was deleted: a line for each, with its inode number, which identifies
// one that has been recreated. No id has a colon.
const parentsFile = "cgroups:parents"

// leaveParents is for parents of a removed cgroup that are in use: the container deleted last
// removes them. They are tried again behind the note, since these others may have gone meanwhile
// without seeing it. A kill before the note loses none: the container's record names them too, and
// goes after it.
func (r *Runtime) leaveParents(dirs []string) error {
	text := ""
	for _, dir := range dirs {
		var st unix.Stat_t
		if unix.Lstat(dir, &st) == nil && !strings.Contains(dir, "\n") {
			text += strconv.FormatUint(st.Ino, 10) + " " + dir + "\n"
		}
	}
	if text == "" {
		return r.removeLeftParents()
	}
	root, err := r.lockRoot(unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	fd, err := unix.Openat(root, parentsFile, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err == nil {
		_, err = unix.Write(fd, []byte(text))
		unix.Close(fd)
	}
	if err != nil {
		return fmt.Errorf("note in %s/%s the cgroups that other processes are in: %w", r.Root, parentsFile, err)
	}
	return r.removeParents(root)
}

// removeLeftParents removes the parents that were left, as far as they are empty now.
func (r *Runtime) removeLeftParents() error {
	if err := unix.Access(r.Root+"/"+parentsFile, unix.F_OK); err != nil {
		return nil
	}
	root, err := r.lockRoot(unix.LOCK_EX)
	if err != nil {
		return err
	}
	defer unix.Close(root)
	return r.removeParents(root)
}

// removeParents is for callers that hold the lock of the root, and pass its descriptor.
func (r *Runtime) removeParents(root int) error {
	text, err := readFileAt(root, parentsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process was faster
	}
	if err != nil {
		return fmt.Errorf("cgroups that other processes were in: %w", err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	slices.SortFunc(lines, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") }) // deepest first
	keep := ""
	for _, line := range lines {
		ino, dir, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		var st unix.Stat_t
		if !strings.HasPrefix(dir, "/") || unix.Lstat(dir, &st) != nil || strconv.FormatUint(st.Ino, 10) != ino {
			continue // gone, and perhaps recreated, or a line that was not written to its end
		}
		if err := unix.Rmdir(dir); err == unix.EBUSY || err == unix.ENOTEMPTY {
			keep += line
		}
	}
	if keep == "" {
		err = unix.Unlinkat(root, parentsFile, 0)
	} else if keep != string(text) {
		err = atomicfile.Write(root, parentsFile, []byte(keep), 0o600)
	}
	if err != nil {
		return fmt.Errorf("cgroups that other processes are in: %w", err)
	}
	return nil
}
