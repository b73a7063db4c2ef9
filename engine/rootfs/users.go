package rootfs

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ErrNoUser is returned where a passwd or group file has no such entry.
var ErrNoUser = errors.New("no such entry")

// A User is an entry of a passwd file (passwd(5)).
type User struct {
	Name     string
	UID, GID uint32
	Home     string // "" where there is none, or what stands there is no path
}

// What strangers may have us read: a group of a hundred thousand members, and some
// two hundred thousand users. Beyond that it is no such file, or one that is to keep us busy.
const (
	longestLine = 1 << 20
	longestFile = 16 << 20
	longestPath = 4096  // PATH_MAX
	mostGroups  = 65536 // NGROUPS_MAX, setgroups(2)
)

// UserByID finds the first entry with the id.
func UserByID(passwd io.Reader, uid uint32) (User, error) {
	return findUser(passwd, func(u *User) bool { return u.UID == uid })
}

// UserByName finds the first entry with the name.
func UserByName(passwd io.Reader, name string) (User, error) {
	return findUser(passwd, func(u *User) bool { return u.Name == name })
}

func findUser(passwd io.Reader, match func(*User) bool) (User, error) {
	var found User
	err := entries(passwd, func(fields []string) bool {
		if len(fields) < 6 {
			return false
		}
		uid, err1 := strconv.ParseUint(fields[2], 10, 32)
		gid, err2 := strconv.ParseUint(fields[3], 10, 32)
		if err1 != nil || err2 != nil {
			return false
		}
		u := User{Name: fields[0], UID: uint32(uid), GID: uint32(gid), Home: fields[5]}
		if len(u.Home) >= longestPath || strings.Contains(u.Home, "\x00") {
			u.Home = "" // no execve takes it in a variable, and no chdir
		}
		if !match(&u) {
			return false
		}
		found = u
		return true
	})
	return found, err
}

// GroupByName finds the id of a group (group(5)).
func GroupByName(group io.Reader, name string) (uint32, error) {
	var id uint32
	err := entries(group, func(fields []string) bool {
		gid, ok := groupID(fields)
		if ok && fields[0] == name {
			id = gid
			return true
		}
		return false
	})
	return id, err
}

// GroupsOf lists the groups that have the user as a member.
func GroupsOf(group io.Reader, user string) ([]uint32, error) {
	var ids []uint32
	err := entries(group, func(fields []string) bool {
		gid, ok := groupID(fields)
		if !ok || len(fields) < 4 {
			return false
		}
		for member := range strings.SplitSeq(fields[3], ",") {
			if member == user {
				ids = append(ids, gid)
				break
			}
		}
		return len(ids) > mostGroups
	})
	if len(ids) > mostGroups {
		return nil, fmt.Errorf("%q is in more than the %d groups that a process can have", user, mostGroups)
	}
	if errors.Is(err, ErrNoUser) {
		err = nil
	}
	return ids, err
}

func groupID(fields []string) (uint32, bool) {
	if len(fields) < 3 {
		return 0, false
	}
	gid, err := strconv.ParseUint(fields[2], 10, 32)
	return uint32(gid), err == nil
}

// entries calls visit for each line until it is content.
func entries(file io.Reader, visit func(fields []string) bool) error {
	limited := &io.LimitedReader{R: file, N: longestFile + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 4096), longestLine)
	for lines.Scan() && limited.N > 0 {
		line := lines.Text()
		if line == "" || line[0] == '#' || line[0] == '+' || line[0] == '-' { // NIS entries, passwd(5)
			continue
		}
		const most = 7 // fields of an entry, passwd(5)
		if visit(strings.SplitN(line, ":", most)) {
			return nil
		}
	}
	err := lines.Err()
	switch {
	case errors.Is(err, bufio.ErrTooLong):
		return fmt.Errorf("a line of more than %d bytes", longestLine)
	case err != nil:
		return fmt.Errorf("read it: %w", err)
	case limited.N <= 0:
		return fmt.Errorf("more than %d bytes", longestFile)
	}
	return ErrNoUser
}
