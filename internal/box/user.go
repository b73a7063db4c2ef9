package box

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/rootfs"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// user resolves --user by the files of the box's root, and finds the home.
func (o *Options) user(c *Caller) (specs.User, string, error) {
	user := specs.User{UID: uint32(c.UID), GID: uint32(c.GID)}
	if o.User == "" {
		if home, ok := lookUp(c.Environ, "HOME"); ok && o.Rootfs == "" {
			return user, home, nil
		}
		entry, err := inFile(o, "/etc/passwd", func(f io.Reader) (rootfs.User, error) { return rootfs.UserByID(f, user.UID) })
		if err != nil || entry.Home == "" {
			return user, "/", nil // nobody that is known, who has no home
		}
		return user, entry.Home, nil
	}
	name, group, hasGroup := strings.Cut(o.User, ":")
	id, err := strconv.ParseUint(name, 10, 32)
	var entry rootfs.User
	if err == nil {
		entry, err = inFile(o, "/etc/passwd", func(f io.Reader) (rootfs.User, error) { return rootfs.UserByID(f, uint32(id)) })
		if err != nil && (hasGroup || unknown(err)) { // a number needs no entry
			entry, err = rootfs.User{UID: uint32(id), GID: uint32(id)}, nil
		}
	} else {
		entry, err = inFile(o, "/etc/passwd", func(f io.Reader) (rootfs.User, error) { return rootfs.UserByName(f, name) })
	}
	if err != nil {
		return user, "", fmt.Errorf("user %q: %w in the /etc/passwd of the box (UID:GID, both numbers, needs none)", name, err)
	}
	user.UID, user.GID = entry.UID, entry.GID
	switch {
	case hasGroup:
		if user.GID, err = o.group(group); err != nil {
			return user, "", err
		}
	case entry.Name != "":
		groups, err := inFile(o, "/etc/group", func(f io.Reader) ([]uint32, error) { return rootfs.GroupsOf(f, entry.Name) })
		if err != nil && !unknown(err) {
			return user, "", fmt.Errorf("groups of user %q: %w in the /etc/group of the box", name, err)
		}
		user.AdditionalGids = groups
	}
	return user, cmp.Or(entry.Home, "/"), nil
}

// unknown reports whether there is no such entry, as opposed to a file that can't be
// searched.
func unknown(err error) bool {
	return errors.Is(err, rootfs.ErrNoUser) || errors.Is(err, fs.ErrNotExist)
}

func (o *Options) group(name string) (uint32, error) {
	if id, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(id), nil
	}
	id, err := inFile(o, "/etc/group", func(f io.Reader) (uint32, error) { return rootfs.GroupByName(f, name) })
	if err != nil {
		return 0, fmt.Errorf("group %q: %w in the /etc/group of the box", name, err)
	}
	return id, nil
}

// inFile reads a file of the root that the box will have.
func inFile[T any](o *Options, name string, read func(io.Reader) (T, error)) (T, error) {
	var zero T
	if o.Rootfs == "" {
		f, err := os.Open(name)
		if err != nil {
			return zero, err
		}
		defer f.Close()
		return read(f)
	}
	root, err := rootfs.Open(o.Rootfs)
	if err != nil {
		return zero, err
	}
	defer root.Close()
	f, err := root.Open(name)
	if err != nil {
		return zero, err
	}
	defer f.Close()
	return read(f)
}
