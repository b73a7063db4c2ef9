package inventory

import (
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/berth-runtime/berth/internal/subdir"
	"golang.org/x/sys/unix"
)

// walk looks at a hierarchy, with few system calls for each cgroup: a node may have thousands.
type walk struct {
	version2 bool
	found    []Container
	others   []other
	buf      [16 << 10]byte
}

// other is a cgroup with processes that is no container by its name.
type other struct {
	path string
	pids []string
}

// deepest bounds how far down is looked: a user may nest cgroups without end.
const deepest = 32

const directory = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// below looks at all that is below the mount point of a hierarchy.
func (w *walk) below(mountpoint string) error {
	top, err := unix.Open(mountpoint, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("look for containers: %w", &os.PathError{Op: "open", Path: mountpoint, Err: err})
	}
	defer unix.Close(top)
	w.children(top, "/", 0)
	return nil
}

// children looks at the cgroups in a directory. What is removed meanwhile is passed over.
func (w *walk) children(dir int, at string, depth int) {
	if depth == deepest {
		return
	}
	for _, name := range w.names(dir) {
		if c, ok := named(at, name); ok {
			if w.runs(dir, name, depth) {
				w.found = append(w.found, c)
			}
			continue
		}
		fd, err := unix.Openat(dir, name, directory, 0)
		if err != nil {
			continue
		}
		child := path.Join(at, name)
		// What only orders others has no processes: slices, and a pod without systemd.
		if _, pod := podOf(child); !pod && !strings.HasSuffix(name, ".slice") {
			if pids := strings.Fields(w.read(fd, "cgroup.procs", true)); len(pids) > 0 {
				w.others = append(w.others, other{child, pids})
			}
		}
		w.children(fd, child, depth+1)
		unix.Close(fd)
	}
}

// runs reports whether a process is in a cgroup or below it.
func (w *walk) runs(dir int, name string, depth int) bool {
	if w.version2 {
		return strings.Contains(w.read(dir, name+"/cgroup.events", false), "populated 1")
	}
	if w.read(dir, name+"/cgroup.procs", false) != "" {
		return true
	}
	fd, err := unix.Openat(dir, name, directory, 0)
	if err != nil || depth == deepest {
		return false
	}
	defer unix.Close(fd)
	for _, inner := range w.names(fd) {
		if w.runs(fd, inner, depth+1) {
			return true
		}
	}
	return false
}

// read gives the text of a file, or what the kernel gives of it at once; "" if it can't be read.
func (w *walk) read(dir int, name string, whole bool) string {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	text := ""
	for {
		n, err := unix.Read(fd, w.buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return text
		}
		text += string(w.buf[:n])
		if !whole {
			return text
		}
	}
}

// names lists the cgroups in one; what was removed meanwhile has none.
func (w *walk) names(dir int) []string {
	names, _ := subdir.Names(dir, w.buf[:])
	return names
}
