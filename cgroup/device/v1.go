package device

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup/ledger"
)

// Line is one line for devices.allow or devices.deny of cgroup v1.
type Line struct {
	Allow bool
	Text  string
}

// File is the control file that the line is for.
func (l Line) File() string {
	if l.Allow {
		return "devices.allow"
	}
	return "devices.deny"
}

// exceptions is what a v1 cgroup keeps: a default, and a set of patterns with
// the access in which they differ from it (struct dev_cgroup in
// security/device_cgroup.c).
type exceptions struct {
	allow bool // the default
	order []pattern
	set   map[pattern]Access
}

// V1 gives the lines that make a v1 cgroup enforce the policy, whatever it had
// before. The first resets it, which the kernel refuses in a cgroup that has
// children; see UpdateV1.
//
// The kernel has one default with exceptions, and in the order of the rules it
// only ever looks for an exception with the very same pattern: "deny c 1:3"
// after "allow c 1:*" does nothing at all. Writing the config's rules out as
// they are would then leave open what the config closes. So the exceptions are
// made from the meaning of the policy, and what they cannot express is an
// error.
func (p Policy) V1() ([]Line, error) {
	e, err := p.exceptions()
	if err != nil {
		return nil, err
	}
	return e.lines(), nil
}

// UpdateV1 gives the lines for a cgroup that is in use, whose devices.list is
// present. Where it can, it adds what is new and then removes what is gone,
// so that there is no moment at which the container cannot use a device that it
// has before and after. Where it cannot, the lines are those of V1.
func (p Policy) UpdateV1(present string) ([]Line, error) {
	want, err := p.exceptions()
	if err != nil {
		return nil, err
	}
	have, err := parseList(present)
	if err != nil {
		return nil, err
	}
	// devices.list does not show the exceptions of a cgroup that allows by
	// default.
	if have.allow || want.allow {
		return want.lines(), nil
	}
	var lines []Line
	for _, q := range want.order {
		if add := want.set[q] &^ have.set[q]; add != 0 {
			lines = append(lines, Line{true, q.String() + " " + add.String()})
		}
	}
	for _, q := range have.order {
		if remove := have.set[q] &^ want.set[q]; remove != 0 {
			lines = append(lines, Line{false, q.String() + " " + remove.String()})
		}
	}
	return lines, nil
}

// UndoV1 gives the lines that bring a cgroup back to what its devices.list was,
// after some lines of UpdateV1 were written. What a cgroup that allows by default
// has denied besides is not in that list, so that it cannot be brought back once
// a reset was written: then there are none.
func UndoV1(was string, written []Line) ([]Line, error) {
	have, err := parseList(was)
	if err != nil || len(written) == 0 {
		return nil, err
	}
	if strings.HasPrefix(written[0].Text, "a ") {
		if have.allow {
			return nil, nil
		}
		return have.lines(), nil
	}
	var lines []Line
	for _, l := range slices.Backward(written) {
		lines = append(lines, Line{!l.Allow, l.Text})
	}
	return lines, nil
}

func (e exceptions) lines() []Line {
	lines := []Line{{e.allow, "a *:* rwm"}}
	for _, q := range e.order {
		lines = append(lines, Line{!e.allow, q.String() + " " + e.set[q].String()})
	}
	return lines
}

// parseList reads devices.list.
func parseList(text string) (exceptions, error) {
	e := exceptions{set: map[pattern]Access{}}
	for line := range strings.SplitSeq(text, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 3 || len(fields[0]) != 1 {
			return e, fmt.Errorf("devices.list: %q is not a rule", line)
		}
		q := pattern{typ: Type(fields[0][0])}
		major, minor, _ := strings.Cut(fields[1], ":")
		var err1, err2 error
		q.major, err1 = parseNumber(major)
		q.minor, err2 = parseNumber(minor)
		if err1 != nil || err2 != nil || q.typ != AnyType && q.typ != Block && q.typ != Char || strings.Trim(fields[2], "rwm") != "" {
			return e, fmt.Errorf("devices.list: %q is not a rule", line)
		}
		if q.typ == AnyType {
			e.allow = true
			continue
		}
		for _, c := range fields[2] {
			switch c {
			case 'r':
				e.set[q] |= Read
			case 'w':
				e.set[q] |= Write
			case 'm':
				e.set[q] |= Mknod
			}
		}
		e.order = append(e.order, q)
	}
	return e, nil
}

func parseNumber(s string) (int64, error) {
	if s == "*" {
		return Any, nil
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return int64(n), err
}

// exceptions finds the default and the exceptions that mean the policy.
func (p Policy) exceptions() (exceptions, error) {
	cells := p.cells()
	open := p.granted(pattern{Block, Any, Any}) == All && p.granted(pattern{Char, Any, Any}) == All
	e, hole, ok := p.against(cells, open)
	if !ok {
		e, _, ok = p.against(cells, !open)
	}
	if !ok {
		return exceptions{}, ledger.Errors{{
			Pointer: "/devices",
			Message: "cgroup v1 cannot express these rules: " + hole.String() + " has less access than a wildcard that it falls under",
			Hint:    "name the devices one by one instead of the wildcard, or use a host with cgroup v2",
		}}
	}
	return e, nil
}

// cells are the patterns whose devices may be treated alike: those of the
// rules, split by type, everything of a type, and where one fixes the major and another the minor,
// what they have in common.
func (p Policy) cells() []pattern {
	var cells []pattern
	add := func(q pattern) {
		if !slices.Contains(cells, q) {
			cells = append(cells, q)
		}
	}
	for _, t := range []Type{Char, Block} {
		var majors, minors []int64
		add(pattern{t, Any, Any})
		for _, r := range p.rules {
			if r.Type != AnyType && r.Type != t {
				continue
			}
			add(pattern{t, r.Major, r.Minor})
			switch {
			case r.Major != Any && r.Minor == Any:
				majors = append(majors, r.Major)
			case r.Major == Any && r.Minor != Any:
				minors = append(minors, r.Minor)
			}
		}
		for _, major := range majors {
			for _, minor := range minors {
				add(pattern{t, major, minor})
			}
		}
	}
	return cells
}

// against makes the exceptions from a default. With a default of deny, access is
// given where a single exception has all of it; with a default of allow, it is
// refused where any exception has some of it. In both, a pattern's exception can
// only add to that of a wildcard that covers it, never take from it: a cell
// where it would have to is a hole.
func (p Policy) against(cells []pattern, allow bool) (e exceptions, hole pattern, ok bool) {
	e = exceptions{allow: allow, set: map[pattern]Access{}}
	differs := func(q pattern) Access {
		if allow {
			return All &^ p.granted(q)
		}
		return p.granted(q)
	}
	for _, q := range cells {
		access := differs(q)
		needed := access != 0
		for _, wider := range cells {
			if wider == q || !wider.covers(q) {
				continue
			}
			inherited := differs(wider)
			if inherited&^access != 0 {
				return e, q, false
			}
			if inherited == access {
				needed = false
			}
		}
		if needed {
			e.order = append(e.order, q)
			e.set[q] = access
		}
	}
	return e, pattern{}, true
}
