package container

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/rootfs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// UserByID finds a user in the running container's passwd file.
func (c *Container) UserByID(uid uint32) (rootfs.User, error) {
	return inFile(c, "/etc/passwd", func(f io.Reader) (rootfs.User, error) { return rootfs.UserByID(f, uid) })
}

// User resolves USER[:GROUP], each a name or a number, as the running container
// has them (exec --user). A number needs no entry. A user without a group gets
// the groups of the entry.
func (c *Container) User(text string) (specs.User, error) {
	var user specs.User
	name, group, hasGroup := strings.Cut(text, ":")
	if id, err := strconv.ParseUint(name, 10, 32); err == nil {
		user.UID, name = uint32(id), ""
		if !hasGroup {
			u, err := c.UserByID(user.UID)
			if err != nil && !errors.Is(err, rootfs.ErrNoUser) {
				return user, fmt.Errorf("user %d: %w (USER:GROUP, both numbers, needs no file)", id, err)
			}
			user.GID, name = u.GID, u.Name
		}
	} else {
		u, err := inFile(c, "/etc/passwd", func(f io.Reader) (rootfs.User, error) { return rootfs.UserByName(f, name) })
		if err != nil {
			return user, fmt.Errorf("user %q: %w", name, err)
		}
		user.UID, user.GID = u.UID, u.GID
	}
	if hasGroup {
		gid, err := c.Group(group)
		user.GID = gid
		return user, err
	}
	if name != "" {
		groups, err := inFile(c, "/etc/group", func(f io.Reader) ([]uint32, error) { return rootfs.GroupsOf(f, name) })
		if err != nil && !errors.Is(err, rootfs.ErrNoUser) {
			return user, fmt.Errorf("groups of user %q: %w (USER:GROUP takes no others)", name, err)
		}
		user.AdditionalGids = groups
	}
	return user, nil
}

// Group resolves a group, by name or number, as the running container has it.
func (c *Container) Group(name string) (uint32, error) {
	if id, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(id), nil
	}
	id, err := inFile(c, "/etc/group", func(f io.Reader) (uint32, error) { return rootfs.GroupByName(f, name) })
	if err != nil {
		return 0, fmt.Errorf("group %q: %w", name, err)
	}
	return id, nil
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

// inFile reads a file of the running container, mounts and all.
func inFile[T any](c *Container, name string, read func(io.Reader) (T, error)) (T, error) {
	var zero T
	root, err := rootfs.Open("/proc/" + strconv.Itoa(c.Pid) + "/root")
	if err != nil {
		return zero, err
	}
	defer root.Close()
	if !c.alive() {
		return zero, errors.New("the container is gone")
	}
	f, err := root.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return zero, fmt.Errorf("%w: the container has no %s (a number needs none)", rootfs.ErrNoUser, name)
	}
	if err != nil {
		return zero, fmt.Errorf("in the container: %w", err)
	}
	defer f.Close()
	found, err := read(f)
	if err != nil {
		return zero, fmt.Errorf("%w in the container's %s", err, name)
	}
	return found, nil
}
