package cgrouptool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/systemd"
	"github.com/berth-runtime/berth/cgroup/systemd/gvariant"
	"github.com/berth-runtime/berth/cgroup/systemd/unit"
	"github.com/berth-runtime/berth/internal/ptr"
	"golang.org/x/sys/unix"
)

// Home is where relative paths begin, unless this process is in a unit that is delegated to it:
// that one is its place then. It is never the root, which belongs to the init system.
type Home struct {
	Path string
	// Unit is the service of systemd that this is; "" where systemd is not the init system.
	Unit string
	// Slice is the one around it, and User says that a user's manager has it.
	Slice string
	User  bool
}

// homeUnit is a service without processes, in which the cgroups are that have no unit of their own:
// a scope ends with its last process, and a slice can't be delegated.
const homeUnit = "berth-cgroups.service"

// HomeBelow gives the home below a parent in the notation of paths, with "" the default.
// bySystemd is set where systemd makes it.
func HomeBelow(parent string, bySystemd bool, uid int) (Home, error) {
	if !bySystemd {
		if parent == "" {
			parent = "/berth"
		}
		return Home{Path: parent}, nil
	}
	manager := "/"
	switch {
	case uid != 0:
		manager, parent = fmt.Sprintf("/user.slice/user-%d.slice/user@%d.service", uid, uid), "/user"
	case parent == "":
		parent = "/machine"
	}
	slice, err := unit.SliceName(parent)
	if err != nil {
		return Home{}, err
	}
	below, err := unit.SlicePath(slice)
	return Home{Path: path.Join(manager, below, homeUnit), Unit: homeUnit, Slice: slice, User: uid != 0}, err
}

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
	if base != "/" && t.onIsland(base) {
		at, err = t.Host.ResolvePath(target.Path, "")
		return at, false, err
	}
	if at, err = t.Host.ResolvePath(path.Join(t.Home.Path, path.Clean("/"+target.Path)), ""); at == t.Home.Path {
		err = fmt.Errorf("cgroup path %q names no cgroup", target.Path)
	}
	return at, true, err
}

// onIsland reports whether the unit around this process is delegated to it: a user's may be his,
// and end with what it was started for, without being that.
func (t *Tools) onIsland(base string) bool {
	if !t.Home.User || strings.HasSuffix(base, ".slice") {
		return true
	}
	if t.island == nil {
		m := systemd.New(systemd.Options{User: true})
		defer m.Close()
		delegated, err := m.Delegates(context.Background(), path.Base(base))
		t.island = ptr.To(delegated || err != nil)
	}
	return *t.island
}

// enterHome makes the home, where it is a service, and keeps it until leave is called.
func (t *Tools) enterHome() (leave func(), err error) {
	if t.Home.Unit == "" {
		return func() {}, nil
	}
	for range 16 {
		dir, err := t.lockHome(unix.LOCK_SH)
		if err == nil {
			return func() { unix.Close(dir) }, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if err := t.startHome(); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("unit %s ends as fast as it is started (systemctl status %s shows why)", homeUnit, homeUnit)
}

// homeDir is the service's directory, in the hierarchy by which systemd knows it.
func (t *Tools) homeDir() (string, error) {
	hierarchies := t.Host.Hierarchies()
	i := slices.IndexFunc(hierarchies, func(h *cgroup.Hierarchy) bool { return h.Version == 2 })
	if i < 0 {
		i = slices.IndexFunc(hierarchies, func(h *cgroup.Hierarchy) bool { return h.Name == "systemd" })
	}
	if i < 0 {
		return "", errors.New("the hierarchy in which systemd has its units is not mounted")
	}
	return t.dir(hierarchies[i], t.Home.Path), nil
}

// lockHome opens the service's directory and locks it: shared while a cgroup is made in it, and
// exclusively for the look whether it is empty.
func (t *Tools) lockHome(how int) (int, error) {
	at, err := t.homeDir()
	if err != nil {
		return -1, err
	}
	dir, err := unix.Open(at, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == nil {
		if err = unix.Flock(dir, how); err == nil {
			// Who had the lock may have removed it.
			var locked, there unix.Stat_t
			if err = unix.Fstat(dir, &locked); err == nil {
				err = unix.Lstat(at, &there)
			}
			if err == nil && locked.Ino != there.Ino {
				err = unix.ENOENT
			}
		}
		if err != nil {
			unix.Close(dir)
		}
	}
	if err != nil {
		return -1, &os.PathError{Op: "lock", Path: at, Err: err}
	}
	return dir, nil
}

// startHome lets systemd start the service. Two may come at once: that the unit is there then is
// as good.
func (t *Tools) startHome() error {
	m := systemd.New(systemd.Options{User: t.Home.User})
	defer m.Close()
	ctx := context.Background()
	made, err := m.Start(ctx, homeUnit, t.homeProperties())
	if err != nil {
		if at, there := m.ControlGroup(ctx, homeUnit); there == nil && at != "" {
			made, err = at, nil
		}
	}
	if err != nil {
		return fmt.Errorf("start the unit of cgroups without one of their own: %w", err)
	}
	if made != t.Home.Path {
		return fmt.Errorf("unit %s is at %s instead of %s (stop it once it is empty: systemctl stop %s)", homeUnit, made, t.Home.Path, homeUnit)
	}
	if !t.Home.User {
		return nil
	}
	// A user's manager marks no delegations.
	at, err := t.homeDir()
	if err != nil {
		return err
	}
	if err := unix.Setxattr(at, "user.delegate", []byte{'1'}, 0); err != nil {
		return fmt.Errorf("mark %s as delegated: %w", at, err)
	}
	return nil
}

func (t *Tools) homeProperties() []systemd.Property {
	text := func(s string) gvariant.Value { return gvariant.Value{Type: "s", Text: s} }
	const command = "/bin/true"
	return []systemd.Property{
		{Name: "Description", Value: "cgroups made by berth cgroup"},
		{Name: "Slice", Value: t.Home.Slice},
		{Name: "Delegate", Value: true},
		{Name: "Type", Value: "oneshot"},
		{Name: "RemainAfterExit", Value: true},
		{Name: "ExecStart", Value: gvariant.Value{Type: "a(sasb)", Members: []gvariant.Value{{Type: "(sasb)", Members: []gvariant.Value{
			text(command), {Type: "as", Members: []gvariant.Value{text(command)}}, {Type: "b"}}}}}},
	}
}

// Tidy ends the home when the last cgroup in it has been removed, if these tools made it.
func (t *Tools) Tidy(target Target) error {
	_, home, err := t.resolve(target)
	if err != nil || !home {
		return err
	}
	if t.Home.Unit == "" {
		for _, h := range t.Host.Hierarchies() {
			if dir := t.dir(h, t.Home.Path); isMarked(dir) {
				_ = unix.Rmdir(dir) // as far as it is empty
			}
		}
		return nil
	}
	dir, err := t.lockHome(unix.LOCK_EX)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(dir)
	for _, h := range t.Host.Hierarchies() {
		names, err := t.children(t.dir(h, t.Home.Path))
		if err != nil || len(names) > 0 {
			return err
		}
	}
	m := systemd.New(systemd.Options{User: t.Home.User})
	defer m.Close()
	return m.Stop(context.Background(), homeUnit)
}

// atRoot says of a relative path that is not in the home where there is such a cgroup.
func (t *Tools) atRoot(target Target) string {
	at, home, err := t.resolve(target)
	if err != nil || !home {
		return ""
	}
	from := strings.TrimSuffix(at, path.Clean("/"+target.Path))
	if g, err := t.Host.Open(path.Clean("/" + target.Path)); err == nil {
		g.Close()
		return fmt.Sprintf("%s is a relative path, which begins at %s: write /%s for the one at the root", target.Path, from, target.Path)
	}
	return ""
}
