package changes

import (
	"bytes"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/layer"
)

// xattrs are the extended attributes that go with a file.
func xattrs(fd int) map[string]string {
	size, err := unix.Flistxattr(fd, nil)
	if err != nil || size == 0 {
		return nil
	}
	names := make([]byte, size)
	if size, err = unix.Flistxattr(fd, names); err != nil {
		return nil
	}
	var found map[string]string
	for name := range bytes.SplitSeq(bytes.TrimSuffix(names[:size], []byte{0}), []byte{0}) {
		if !layer.Carried(string(name)) {
			continue
		}
		value := make([]byte, 64<<10) // XATTR_SIZE_MAX
		n, err := unix.Fgetxattr(fd, string(name), value)
		if err != nil {
			continue
		}
		if found == nil {
			found = map[string]string{}
		}
		found[string(name)] = string(value[:n])
	}
	return found
}

// attributesAt are those of what the host has by a name, as st tells of it if it exists.
func attributesAt(name string, st *unix.Stat_t, exists bool) map[string]string {
	if kind := st.Mode & unix.S_IFMT; !exists || kind != unix.S_IFREG && kind != unix.S_IFDIR {
		return nil
	}
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // so that all that is to be there counts as gained
	}
	defer unix.Close(fd)
	return xattrs(fd)
}

// gained names the attributes that there are now and were not, or were others.
func gained(now, were map[string]string) (names []string) {
	for name, value := range now {
		if was, there := were[name]; layer.Carried(name) && (!there || was != value) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// lost reports whether there were attributes that there are no more.
func lost(now, were map[string]string) bool {
	for name := range were {
		if _, there := now[name]; !there {
			return true
		}
	}
	return false
}
