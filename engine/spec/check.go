package spec

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// Check finds what can be refused before anything is touched, whatever the
// host: missing entries, unknown names, values out of range, contradictions.
// The error is [Errors] with every complaint; the warnings are about entries
// that are legal and will not have the effect they seem to have.
func Check(s *specs.Spec) (warnings []Complaint, err error) {
	var c checker
	c.spec(s)
	return c.warnings, c.errors()
}

// CheckProcess checks a process object by itself, as exec --process takes it.
func CheckProcess(p *specs.Process) (warnings []Complaint, err error) {
	var c checker
	c.process(place{}, p)
	return c.warnings, c.errors()
}

// CheckResources checks a resources object by itself, as update -r takes it.
func CheckResources(r *specs.LinuxResources) (warnings []Complaint, err error) {
	var c checker
	c.resources(place{}, r)
	return c.warnings, c.errors()
}

// checker gathers what is found.
type checker struct {
	collector
	warnings []Complaint
	faults   Errors // entries that could not be decoded
}

func (c *checker) bad(p place, message string) { c.hint(p, message, "") }

func (c *checker) hint(p place, message, hint string) {
	complaint := Complaint{Pointer: string(p.appendTo(nil)), Message: message, Hint: hint}
	// Where a value could not be decoded, the check only finds the lack of it.
	if !slices.ContainsFunc(c.faults, complaint.mayFollowFrom) {
		c.add(complaint)
	}
}

func (c *checker) warn(p place, message string) {
	if len(c.warnings) < maxComplaints {
		c.warnings = append(c.warnings, Complaint{Pointer: string(p.appendTo(nil)), Message: message})
	}
}

// text checks a string that reaches the kernel: C strings end at their first
// NUL byte, so what follows would silently be lost.
func (c *checker) text(p place, value string) bool {
	if strings.IndexByte(value, 0) >= 0 {
		c.bad(p, "contains a NUL byte")
		return false
	}
	return true
}

func (c *checker) texts(p place, list []string) {
	for i, s := range list {
		c.text(p.nth(i), s)
	}
}

// line checks a string that is written to a file as one line.
func (c *checker) line(p place, value string) bool {
	if strings.IndexByte(value, '\n') >= 0 {
		c.bad(p, "contains a newline")
		return false
	}
	return c.text(p, value)
}

// absolute checks a path that must start with a slash.
func (c *checker) absolute(p place, path string) bool {
	switch {
	case path == "":
		c.bad(p, "is empty, expected an absolute path")
		return false
	case path[0] != '/':
		c.bad(p, "expected an absolute path, found "+quote(path))
		return false
	}
	return c.text(p, path)
}

// within checks an integer against its bounds.
func (c *checker) within(p place, v, low, high int64) bool {
	if v < low || v > high {
		c.bad(p, "expected "+strconv.FormatInt(low, 10)+" to "+strconv.FormatInt(high, 10)+", found "+strconv.FormatInt(v, 10))
		return false
	}
	return true
}

// quote shows a value of the config in a message, cut if long.
func quote(s string) string {
	const most = 80
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// oneOf ends a message about an unknown name by the known ones.
func oneOf(names ...string) string {
	last := len(names) - 1
	return "expected " + strings.Join(names[:last], ", ") + " or " + names[last]
}

// sortedKeys lets complaints about a map come in the same order every time.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
