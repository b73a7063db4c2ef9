package rootfs

import (
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLinks is how many links a path may have, as the kernel counts them.
const maxLinks = 40

// Missing lists what is not there of a path below a root, from the top down, the path
// itself last: without links, so that each can be made in the one before. Links are
// followed as in the root, to where nothing is yet. What is made by that list may have
// changed meanwhile, and so must be resolved in the root again.
func Missing(root int, name string) ([]string, error) {
	var missing []string
	rest, at, links := strings.Split(name, "/"), "/", 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		next := path.Join(at, part) // "." and "" stay, ".." goes up: all before is without links
		if next == at || part == ".." {
			at = next
			continue
		}
		target, err := linkAt(root, next)
		switch {
		case err == unix.ENOENT || err == nil && target == "" && len(rest) == 0:
			missing = append(missing, next)
			at = next
		case err != nil:
			return nil, err
		case target == "":
			at = next
		default:
			if links++; links > maxLinks {
				return nil, unix.ELOOP
			}
			if path.IsAbs(target) {
				at = "/"
			}
			rest = append(strings.Split(target, "/"), rest...)
		}
	}
	return missing, nil
}

// linkAt reads a link, "" for what is none.
func linkAt(root int, name string) (string, error) {
	fd, err := openat2(root, inside(name), &unix.OpenHow{Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: inRoot})
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK {
		return "", err
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}
