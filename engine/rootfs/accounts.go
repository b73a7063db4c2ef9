package rootfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Accounts are the users and groups that a root knows.
type Accounts struct {
	// Open opens /etc/passwd or /etc/group in the root.
	Open func(name string) (io.ReadCloser, error)
	// Of says in errors whose root it is: "the container".
	Of string
}

// User resolves USER[:GROUP], each a name or a number. A number needs no entry: without
// one it changes the id of base alone, and group and further groups stay what they are.
// A user without a group gets the groups of the entry. The home is "" where no entry
// says it.
func (a *Accounts) User(text string, base specs.User) (user specs.User, home string, err error) {
	name, group, hasGroup := strings.Cut(text, ":")
	var entry User
	if id, number := parseID(name); number {
		entry, err = a.UserByID(id)
		if err != nil && (hasGroup || errors.Is(err, ErrNoUser)) {
			entry, err = User{UID: id, GID: base.GID}, nil
		}
	} else {
		entry, err = find(a, "/etc/passwd", func(f io.Reader) (User, error) { return UserByName(f, name) })
	}
	if err != nil {
		return user, "", fmt.Errorf("user %q: %w", name, err)
	}
	user = specs.User{UID: entry.UID, GID: entry.GID}
	switch {
	case hasGroup:
		user.GID, err = a.Group(group)
	case entry.Name == "":
		user.AdditionalGids = base.AdditionalGids
	default:
		user.AdditionalGids, err = find(a, "/etc/group", func(f io.Reader) ([]uint32, error) { return GroupsOf(f, entry.Name) })
		if errors.Is(err, ErrNoUser) {
			err = nil
		} else if err != nil {
			err = fmt.Errorf("groups of user %q: %w (USER:GROUP takes no others)", entry.Name, err)
		}
	}
	return user, entry.Home, err
}

// UserByID finds the entry of a user.
func (a *Accounts) UserByID(uid uint32) (User, error) {
	return find(a, "/etc/passwd", func(f io.Reader) (User, error) { return UserByID(f, uid) })
}

// Group resolves a group, by name or number.
func (a *Accounts) Group(name string) (uint32, error) {
	if id, number := parseID(name); number {
		return id, nil
	}
	id, err := find(a, "/etc/group", func(f io.Reader) (uint32, error) { return GroupByName(f, name) })
	if err != nil {
		return 0, fmt.Errorf("group %q: %w", name, err)
	}
	return id, nil
}

func parseID(text string) (uint32, bool) {
	id, err := strconv.ParseUint(text, 10, 32)
	return uint32(id), err == nil
}

// readBound is how long reading a file of a root may take. It can be on a file system
// whose server is a process of the container (fuse(4)), and does not answer.
const readBound = 5 * time.Second

// find reads a file of the root. If it is missing, no user is known.
func find[T any](a *Accounts, name string, read func(io.Reader) (T, error)) (T, error) {
	type result struct {
		found T
		err   error
	}
	done := make(chan result, 1) // buffered: the receiver may have given up
	go func() {
		found, err := findIn(a, name, read)
		done <- result{found, err}
	}()
	late := time.NewTimer(readBound)
	defer late.Stop()
	select {
	case r := <-done:
		return r.found, r.err
	case <-late.C:
		var none T
		return none, fmt.Errorf("reading the %s of %s takes longer than %v (is it on a file system that does not answer?)", name, a.Of, readBound)
	}
}

func findIn[T any](a *Accounts, name string, read func(io.Reader) (T, error)) (T, error) {
	var zero T
	f, err := a.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return zero, fmt.Errorf("%w: %s has no %s (a number needs none)", ErrNoUser, a.Of, name)
	}
	if err != nil {
		return zero, fmt.Errorf("in %s: %w", a.Of, err)
	}
	defer f.Close()
	found, err := read(f)
	if errors.Is(err, ErrNoUser) {
		return zero, fmt.Errorf("%w in %s's %s (a number needs none)", err, a.Of, name)
	}
	if err != nil {
		return zero, fmt.Errorf("%w in %s's %s", err, a.Of, name)
	}
	return found, nil
}
