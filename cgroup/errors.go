package cgroup

import (
	"errors"
	"strconv"
	"strings"
)

// What callers branch on, with errors.Is. Permission errors satisfy
// errors.Is(err, fs.ErrPermission); read-only mounts syscall.EROFS.
var (
	// ErrNotMounted: this mount namespace shows no cgroup file system.
	ErrNotMounted = errors.New("no cgroup file system is mounted")
	// ErrNoController: the host, or this place in its tree, lacks the controller.
	ErrNoController = errors.New("controller is not available")
	// ErrFrozen: the group is frozen, and what was asked for needs it thawed.
	ErrFrozen = errors.New("cgroup is frozen")
	// ErrBusy: processes or child groups are still there.
	ErrBusy = errors.New("cgroup is still in use")
	// ErrTimeout: the kernel did not finish within Host.Timeout.
	ErrTimeout = errors.New("timed out")
	// ErrNotOwner: the group has another owner; errors.As gives a *NotOwnerError.
	ErrNotOwner = errors.New("cgroup has another owner")
)

// Error says what was done to which file of a cgroup, and why it failed.
type Error struct {
	Op      string // what was done: "create", "write", "read", "join", …
	Path    string // the file or directory, as this host names it
	Value   string // what was written, where something was
	Pointer string // the entry of the resources object to blame, as "/memory/limit"
	Hint    string // what would help
	Err     error
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Pointer != "" {
		b.WriteString(e.Pointer)
		b.WriteString(": ")
	}
	b.WriteString(e.Op)
	if e.Value != "" {
		b.WriteByte(' ')
		b.WriteString(strconv.Quote(e.Value))
		b.WriteString(" to")
	}
	b.WriteByte(' ')
	b.WriteString(e.Path)
	b.WriteString(": ")
	b.WriteString(e.Err.Error())
	if e.Hint != "" {
		b.WriteString(" (")
		b.WriteString(e.Hint)
		b.WriteByte(')')
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }
