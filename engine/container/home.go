package container

import (
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/rootfs"
	"golang.org/x/sys/unix"
)

// homeIn is where a process has its home by its user's entry in the passwd file of a
// container that is to be made.
func (r *Runtime) homeIn(p *plan.Plan) string {
	accounts := rootfs.Accounts{Of: "the container", Open: func(name string) (io.ReadCloser, error) { return openPlanned(p, name) }}
	return r.homeOf(accounts.UserByID(p.Process.UID))
}

// homeOf is where a process has its home, by its user's entry if there is one. What
// keeps the entry from being looked at is worth a warning: the container runs all
// the same, as one does that has no such file.
func (r *Runtime) homeOf(u rootfs.User, err error) string {
	if err != nil && !errors.Is(err, rootfs.ErrNoUser) {
		r.warn("HOME is /, as the user's can't be found: %v", err)
	}
	if err != nil || u.Home == "" {
		return "/"
	}
	return u.Home
}

// openPlanned opens a file of a container that is to be made: in its root, or in the
// source of the bind mount that will cover it.
func openPlanned(p *plan.Plan, name string) (*rootfs.File, error) {
	for i := len(p.Mounts) - 1; i >= 0; i-- {
		mount := &p.Mounts[i]
		if !mount.Bind {
			continue
		}
		if mount.Destination == name {
			return rootfs.OpenFile(mount.Source)
		}
		if rest, ok := strings.CutPrefix(name, mount.Destination+"/"); ok {
			return openIn(mount.Source, rest)
		}
	}
	f, err := openIn(p.Root.Path, name)
	if errors.Is(err, unix.ENOTDIR) {
		err = fs.ErrNotExist // the root is no directory, of which checkRoot tells
	}
	return f, err
}

func openIn(dir, name string) (*rootfs.File, error) {
	root, err := rootfs.Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.Open(name)
}
