package cgrouptool

import (
	"fmt"
	"path"

	"golang.org/x/sys/unix"
)

// DefaultHome is where relative paths begin, unless this process is in a unit that is delegated to
// it: that one is its place then. It is never the root, which belongs to the init system.
const DefaultHome = "/berth"

// resolve gives the path below the mount points, and whether it is in the home.
func (t *Tools) resolve(target Target) (at string, home bool, err error) {
	if path.IsAbs(target.Path) {
		at, err = t.Host.ResolvePath(target.Path, "")
		return at, false, err
	}
	base, err := t.Host.Base()
	if err != nil {
		return "", false, err
	}
	if base != "/" {
		at, err = t.Host.ResolvePath(target.Path, "")
		return at, false, err
	}
	at, err = t.Host.ResolvePath(path.Join(DefaultHome, path.Clean("/"+target.Path)), "")
	if err == nil && at == DefaultHome {
		err = fmt.Errorf("cgroup path %q names no cgroup", target.Path)
	}
	return at, true, err
}

// Tidy removes the home with the last cgroup in it, if these tools made it.
func (t *Tools) Tidy(target Target) error {
	_, home, err := t.resolve(target)
	if err != nil || !home {
		return err
	}
	for _, h := range t.Host.Hierarchies() {
		if dir := t.dir(h, DefaultHome); isMarked(dir) {
			_ = unix.Rmdir(dir) // as far as it is empty
		}
	}
	return nil
}

// atRoot says of a relative path that is not in the home where there is such a cgroup.
func (t *Tools) atRoot(target Target) string {
	_, home, err := t.resolve(target)
	if err != nil || !home {
		return ""
	}
	g, err := t.Host.Open(path.Clean("/" + target.Path))
	if err != nil {
		return ""
	}
	g.Close()
	return fmt.Sprintf("relative paths begin at %s: write /%s for the one at the root", DefaultHome, target.Path)
}
