package cgroup

import (
	"os"

	"golang.org/x/sys/unix"
)

// walk calls visit for the groups below a directory, children before their parents.
func walk(top int, visit func(dir int) error) error {
	return walkTree(top, visit, func(int, string) error { return nil })
}

// walkTree calls visit for each group below a directory, when it is done with those
// below that, and leave with the directory that it is in, and its name there. Groups
// that are removed meanwhile are passed over.
//
// A process that may write to its group decides how deep it is, so there is one
// descriptor at a time, and no path: the way back is by "..", which is always where it
// came from, since the kernel moves no cgroup to another parent.
func walkTree(top int, visit func(dir int) error, leave func(parent int, name string) error) error {
	names, err := children(top)
	if err != nil {
		return err
	}
	at := top
	goTo := func(fd int) {
		if at != top {
			unix.Close(at)
		}
		at = fd
	}
	defer func() { goTo(top) }()
	todo := [][]string{names} // of each directory on the way here
	var way []string
	for {
		level := len(todo) - 1
		if n := len(todo[level]); n > 0 {
			name := todo[level][n-1]
			todo[level] = todo[level][:n-1]
			fd, err := openAt(at, name, unix.O_RDONLY|unix.O_DIRECTORY)
			if gone(err) {
				continue
			}
			if err != nil {
				return err
			}
			if names, err = children(fd); err != nil && !gone(err) {
				unix.Close(fd)
				return err
			}
			goTo(fd)
			todo, way = append(todo, names), append(way, name)
			continue
		}
		if level == 0 {
			return nil
		}
		if err := visit(at); err != nil && !gone(err) {
			return err
		}
		up, err := openAt(at, "..", unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		goTo(up)
		if err := leave(at, way[level-1]); err != nil && !gone(err) {
			return err
		}
		todo, way = todo[:level], way[:level-1]
	}
}

// children lists the child groups of a directory.
func children(dirfd int) ([]string, error) {
	var st unix.Stat_t
	// A cgroup's link count is 2 and one for each child, which spares the
	// usual group, a leaf, the reading of its names.
	if err := unix.Fstat(dirfd, &st); err != nil {
		return nil, err
	}
	if st.Nlink == 2 {
		return nil, nil
	}
	fd, err := openAt(dirfd, ".", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	dir := os.NewFile(uintptr(fd), ".")
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return nil, errno(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}
