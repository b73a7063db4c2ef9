package cgrouptool

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/cgroup"
	"golang.org/x/sys/unix"
)

// A cgroup that these tools make carries an extended attribute, so that it is
// known as theirs by the next call, and by no call when it was removed and made
// again by another program, as a list in a file would claim. The kernel keeps
// such attributes on version 1 and 2, since Linux 5.7 the user ones too.
//
// The trusted one can be set and seen with CAP_SYS_ADMIN only. The user one
// can be set by the directory's owner, so it counts for the owner alone.
const (
	trustedMark = "trusted.berth"
	userMark    = "user.berth"
)

// mark makes a directory known as made by these tools.
func mark(dir string) error {
	err := setMark(dir, trustedMark)
	if user := setMark(dir, userMark); user == nil {
		return nil
	}
	return err
}

func setMark(dir, name string) error {
	for {
		err := unix.Setxattr(dir, name, []byte{'1'}, 0)
		if err != unix.EINTR {
			return err
		}
	}
}

// isMarked reports whether mark was here, and whether that counts for us.
func isMarked(dir string) bool {
	if hasMark(dir, trustedMark) {
		return true
	}
	var st unix.Stat_t
	return hasMark(dir, userMark) && unix.Stat(dir, &st) == nil && int(st.Uid) == os.Geteuid()
}

func hasMark(dir, name string) bool {
	var value [1]byte
	n, err := unix.Getxattr(dir, name, value[:])
	return err == nil && n == 1 && value[0] == '1'
}

// marked is the record of a path for cgroup.Made: its directories, and those
// above it, that these tools made.
func (t *Tools) marked(path string) []string {
	var record []string
	for _, h := range t.Host.Hierarchies() {
		for at := path; at != "/"; at = parent(at) {
			if dir := t.dir(h, at); isMarked(dir) {
				record = append(record, dir)
			}
		}
	}
	return record
}

// mayChange refuses what the group's owner has not allowed: package cgroup
// asks for writes of limits; removing, entering and handing over ask here.
func (t *Tools) mayChange(op string, g *cgroup.Group) error {
	record := t.marked(g.Path())
	for _, h := range t.in(g) {
		one, err := t.Host.Open(g.Path(), cgroup.Only(h.String()), cgroup.Made(record))
		if err != nil {
			return err
		}
		owner := one.Owner()
		one.Close()
		if owner.Ownership != cgroup.Ours && owner.Ownership != cgroup.Delegated {
			refused := &cgroup.NotOwnerError{Op: op, Path: t.dir(h, g.Path()), Owner: owner}
			if !t.Force {
				return refused
			}
			t.overrule(refused)
		}
	}
	return nil
}

// overrule says what --force has allowed, once for each cgroup, however many directories it is.
func (t *Tools) overrule(refused *cgroup.NotOwnerError) {
	path := refused.Path
	for _, h := range t.Host.Hierarchies() {
		if below, ok := strings.CutPrefix(refused.Path, t.dir(h, "/")); ok && len(below) < len(path) {
			path = below
		}
	}
	if text := fmt.Sprintf("--force: changes %s, which %s", cmp.Or(path, "/"), refused.Owner); !slices.Contains(t.overruled, text) {
		t.overruled = append(t.overruled, text)
		t.Warn(text)
	}
}

// gone reports whether an error says that a cgroup is not there any more: files
// of a removed one, opened before, answer ENODEV.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV)
}
