package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// layersOf says what a root file system is made of whose writes are discarded:
// an overlay of the whole, and one of each file system that is mounted inside.
//
// In a new user namespace the kernel refuses an overlay of a directory below which
// something is mounted, as that might uncover what a mount hides (Linux 5.14). There
// such a directory is recreated, and its entries become layers.
//
// A directory that is not to be written to is a layer, too, and no mount of the host's: a
// socket or a pipe can be used on a read-only mount as well, but in an overlay it is
// another than the host's.
func layersOf(p *plan.Plan) ([]compile.Layer, error) {
	l := &layering{root: filepath.Clean(p.Root.Path)}
	for i := range p.Mounts {
		l.covered = append(l.covered, p.Mounts[i].Destination)
	}
	mounts, err := mountinfo.Of("self")
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		if inner, ok := below(l.root, m.Point); ok {
			l.points = append(l.points, inner)
		}
	}
	l.readonly = p.Root.DiscardBut
	if p.Makes(specs.UserNamespace) && l.holdsMounts("/") {
		l.layers = []compile.Layer{{Kind: compile.Fresh, Path: "/", Lower: l.root, Mode: 0o755}}
		if err := l.takeApart("/"); err != nil {
			return nil, err
		}
		return l.layers, l.mergeReadonly()
	}
	if err := l.merge("/"); err != nil {
		return nil, err
	}
	l.addReadonly()
	// A mount on top of a mount is on the list twice, and is one layer.
	seen := map[string]bool{}
	for _, point := range l.points {
		if l.isCovered(point) || seen[point] {
			continue
		}
		seen[point] = true
		// What can't be looked at, such as a FUSE file system whose program is dead or which is
		// another user's, is not in the container.
		_ = l.merge(point)
	}
	return l.layers, nil
}

type layering struct {
	root    string
	points  []string // of mounts below the root, as paths in it, without the root's own
	covered []string // by mounts of the container
	layers  []compile.Layer
	// readonly is the directory that can't be written to, "" for none.
	readonly string
}

// addReadonly has the read-only directory be a layer as a mount point is: before those
// that lie in it.
func (l *layering) addReadonly() {
	if l.readonly == "" || slices.Contains(l.points, l.readonly) {
		return
	}
	i := slices.IndexFunc(l.points, func(point string) bool { return strings.HasPrefix(point, l.readonly+"/") })
	if i < 0 {
		i = len(l.points)
	}
	l.points = slices.Insert(l.points, i, l.readonly)
}

// mergeReadonly puts the read-only directory on top of a root that was taken apart.
// With mounts in it, it is Fixed in the end.
func (l *layering) mergeReadonly() error {
	if l.readonly == "" || l.isCovered(l.readonly) {
		return nil
	}
	for i := range l.layers {
		if l.layers[i].Kind == compile.Merged && l.layers[i].Path == l.readonly {
			return nil // it is one already
		}
	}
	if err := l.merge(l.readonly); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// below tells the path that a path of the host has below a root, "" not among them.
func below(root, name string) (string, bool) {
	if root == "/" {
		return name, name != "/"
	}
	inner, ok := strings.CutPrefix(name, root)
	return inner, ok && strings.HasPrefix(inner, "/")
}

func (l *layering) host(name string) string { return filepath.Join(l.root, name) }

// isCovered reports whether the container has a mount of its own there or above.
func (l *layering) isCovered(name string) bool {
	for _, c := range l.covered {
		if name == c || strings.HasPrefix(name, c+"/") {
			return true
		}
	}
	return false
}

// holdsMounts reports whether something is mounted below a directory.
func (l *layering) holdsMounts(dir string) bool {
	prefix := strings.TrimSuffix(dir, "/") + "/"
	for _, point := range l.points {
		if strings.HasPrefix(point, prefix) {
			return true
		}
	}
	return false
}

// merge makes a layer of a directory, or of a file that is mounted.
func (l *layering) merge(name string) error {
	var st unix.Stat_t
	if err := unix.Stat(l.host(name), &st); err != nil {
		return fmt.Errorf("config.json: /root/path: %w", &os.PathError{Op: "stat", Path: l.host(name), Err: err})
	}
	kind := compile.Merged
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		kind = compile.Fixed
	}
	l.layers = append(l.layers, compile.Layer{
		Kind: kind, Path: name, Lower: l.host(name), Mode: st.Mode & 0o7777, UID: st.Uid, GID: st.Gid,
		Readonly: l.readonly != "" && (name == l.readonly || strings.HasPrefix(name, l.readonly+"/")),
	})
	return nil
}

// takeApart makes layers of the entries of a directory that is there already.
func (l *layering) takeApart(dir string) error {
	entries, err := os.ReadDir(l.host(dir))
	if err != nil {
		return fmt.Errorf("config.json: /root/path: %w", err)
	}
	for _, e := range entries {
		if err := l.take(path.Join(dir, e.Name()), e.Type()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (l *layering) take(name string, kind fs.FileMode) error {
	if l.isCovered(name) {
		return nil
	}
	add := func(k compile.LayerKind, target string) {
		l.layers = append(l.layers, compile.Layer{Kind: k, Path: name, Lower: l.host(name), Target: target, Mode: 0o755})
	}
	switch {
	case kind&fs.ModeSymlink != 0:
		target, err := os.Readlink(l.host(name))
		if err != nil {
			return err
		}
		add(compile.Link, target)
	case kind.IsRegular():
		add(compile.Plug, "")
		add(compile.Fixed, "")
	case kind.IsDir():
		add(compile.Folder, "")
		if l.holdsMounts(name) && l.takeApart(name) == nil {
			return nil
		}
		_ = l.merge(name) // else it is an empty directory: see layersOf
	}
	return nil // devices, sockets and pipes belong to the host's programs
}
