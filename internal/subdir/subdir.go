package subdir

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Names lists the directories in an open one, in no order. The buffer is for the kernel, and should
// have several KiB. A file system without types of entries (DT_UNKNOWN) may have files among them.
func Names(dir int, buf []byte) ([]string, error) {
	var st unix.Stat_t
	// A cgroup has a link for itself, one in its parent, and one for each child, which spares the
	// usual one, a leaf, the reading of its files' names.
	if err := unix.Fstat(dir, &st); err != nil || st.Nlink == 2 {
		return nil, err
	}
	var names []string
	known := true // whether an entry is a directory
	for {
		n, err := unix.Getdents(dir, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return names, err
		}
		// struct linux_dirent64 of getdents64(2): the length at 16, the type at 18, the name at 19.
		for rest := buf[:n]; len(rest) > 19; {
			long := int(binary.NativeEndian.Uint16(rest[16:]))
			if long < 20 || long > len(rest) {
				break
			}
			kind := rest[18]
			known = known && kind != unix.DT_UNKNOWN
			if kind == unix.DT_DIR || kind == unix.DT_UNKNOWN {
				if name := unix.ByteSliceToString(rest[19:long]); name != "." && name != ".." {
					names = append(names, name)
				}
			}
			rest = rest[long:]
		}
		// All that there were at the fstat: nothing is asked that is known. (Btrfs and overlays,
		// where a copied tree may be, always count 1.)
		if known && uint64(len(names))+2 == uint64(st.Nlink) {
			return names, nil
		}
	}
}
