package systemd

import (
	"errors"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/internal/dbus"
)

// Error is a call that failed.
type Error struct {
	// Op is what was to be done.
	Op string
	// Unit is what it was to be done to.
	Unit string
	// Source is the entry of the config that is to blame, where one is: the
	// JSON pointer of a field, or the key of an annotation.
	Source string
	Err    error
	Hint   string
}

func (e *Error) Error() string {
	s := e.Op
	if e.Unit != "" {
		s += " unit " + e.Unit
	}
	if e.Source != "" {
		s += ": " + e.Source
	}
	s += ": " + e.Err.Error()
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// The errors that callers tell apart.
var (
	// ErrUnitExists means that a unit of the name is there and cannot be
	// cleared away.
	ErrUnitExists = errors.New("a unit of this name is there already")
	// ErrNoUnit means that systemd does not know the unit.
	ErrNoUnit = errors.New("systemd knows no such unit")
	// ErrNoFreezer means that this systemd cannot freeze the unit; the
	// cgroup's own file may.
	ErrNoFreezer = errors.New("systemd cannot freeze it")
)

// JobError is a job that did not end well.
type JobError struct{ Result string }

func (e *JobError) Error() string {
	s := "its job ended as " + e.Result
	if why := e.explain(); why != "" {
		s += ": " + why
	}
	return s
}

// explain has the results that org.freedesktop.systemd1(5) tells of.
func (e *JobError) explain() string {
	switch e.Result {
	case "canceled":
		return "something else cancelled it, such as a systemctl stop at the same time"
	case "timeout":
		return "systemd gave up on it"
	case "failed":
		return "systemd's journal has the reason; often a process that was to be in it is gone"
	case "dependency":
		return "another unit that it needs, such as its slice, could not be started"
	case "skipped":
		return "it did not apply to the state of the unit"
	case "invalid":
		return "units of this type have no such job"
	case "assert":
		return "an assertion of the unit does not hold"
	case "unsupported":
		return "this system does not support units of this type"
	case "collected", "once":
		return "systemd dropped the unit before it was started"
	}
	return ""
}

// fail wraps an error for the caller. Errors that are told already pass.
func fail(op, unit string, err error) error {
	var told *Error
	if err == nil || errors.As(err, &told) {
		return err
	}
	e := &Error{Op: op, Unit: unit, Err: plain(err)}
	switch {
	case isLost(err):
		e.Hint = "the connection to systemd broke; is the bus being restarted?"
	case isNamed(err, "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired"):
		e.Hint = "a user other than root can manage the units of its own systemd only"
	case isNamed(err, "org.freedesktop.DBus.Error.LimitsExceeded"):
		e.Hint = "the bus has too many connections of this user"
	}
	return e
}

// busError prints an error of the bus with its name, which its text leaves out.
type busError struct{ cause *dbus.Error }

func (e busError) Error() string {
	text := e.cause.Error()
	if text == e.cause.Name {
		return text
	}
	return text + " [" + e.cause.Name[strings.LastIndexByte(e.cause.Name, '.')+1:] + "]"
}

func (e busError) Unwrap() error { return e.cause }

func plain(err error) error {
	var e *dbus.Error
	if errors.As(err, &e) {
		return busError{e}
	}
	return err
}

// isNamed says whether an error is one of the bus with one of these names.
func isNamed(err error, names ...string) bool {
	var e *dbus.Error
	return errors.As(err, &e) && slices.Contains(names, e.Name)
}

const (
	unitExistsName = "org.freedesktop.systemd1.UnitExists"
	noSuchUnitName = "org.freedesktop.systemd1.NoSuchUnit"
)
