package device

import (
	"math"
	"strconv"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/opencontainers/runtime-spec/specs-go"
)

// Access is a set of ways to use a device, in the bits of the kernel's
// BPF_DEVCG_ACC_*.
type Access uint8

// The ways to use a device.
const (
	Mknod Access = 1 << iota
	Read
	Write

	All = Mknod | Read | Write
)

// String is the spec's form, "rwm".
func (a Access) String() string {
	s := ""
	if a&Read != 0 {
		s += "r"
	}
	if a&Write != 0 {
		s += "w"
	}
	if a&Mknod != 0 {
		s += "m"
	}
	return s
}

// Type is a kind of device.
type Type byte

// The kinds of device.
const (
	AnyType Type = 'a'
	Block   Type = 'b'
	Char    Type = 'c'
)

// Any is a major or minor number that matches all.
const Any int64 = -1

// Rule allows or denies access to the devices of a pattern.
type Rule struct {
	Allow        bool
	Type         Type
	Major, Minor int64
	Access       Access
	// Index is the rule's place in the list that was folded.
	Index int
}

// String is the line that v1 files take: "c 1:3 rwm".
func (r Rule) String() string {
	return r.pattern().String() + " " + r.Access.String()
}

// parseRules reads the rules of a config. What is not set means all, as the
// spec has it for type, major and minor; it is silent about an access that is
// not set, and all is what peers make of that.
func parseRules(list []specs.LinuxDeviceCgroup) ([]Rule, error) {
	rules := make([]Rule, 0, len(list))
	var errs ledger.Errors
	for i := range list {
		r, e := parseRule(&list[i])
		if e != nil {
			e.Pointer = "/devices/" + strconv.Itoa(i) + e.Pointer
			errs = append(errs, e)
			continue
		}
		r.Index = i
		rules = append(rules, r)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return rules, nil
}

func parseRule(d *specs.LinuxDeviceCgroup) (Rule, *ledger.FieldError) {
	r := Rule{Allow: d.Allow, Type: AnyType, Major: Any, Minor: Any, Access: All}
	switch d.Type {
	case "", "a":
	case "b", "c":
		r.Type = Type(d.Type[0])
	default:
		return r, &ledger.FieldError{Pointer: "/type", Message: strconv.Quote(d.Type) + " is not a type of a device rule", Hint: "a, b or c"}
	}
	for _, n := range []struct {
		at   string
		from *int64
		to   *int64
	}{{"/major", d.Major, &r.Major}, {"/minor", d.Minor, &r.Minor}} {
		if n.from == nil {
			continue
		}
		if *n.from < Any || *n.from > math.MaxUint32 {
			return r, &ledger.FieldError{Pointer: n.at, Message: strconv.FormatInt(*n.from, 10) + " is not a device number", Hint: "0 or more, and -1 or nothing for all"}
		}
		*n.to = *n.from
	}
	if d.Access == "" {
		return r, nil
	}
	// Other letters, such as the "a" that clients write for all devices, say nothing: the
	// other runtimes pass over them.
	if r.Access = parseAccess(d.Access); r.Access == 0 {
		return r, &ledger.FieldError{Pointer: "/access", Message: strconv.Quote(d.Access) + " is no access", Hint: "a combination of r, w and m"}
	}
	return r, nil
}

// pattern is the set of devices that a rule speaks of.
type pattern struct {
	typ          Type
	major, minor int64
}

func (r Rule) pattern() pattern { return pattern{r.Type, r.Major, r.Minor} }

func (p pattern) String() string {
	return string(p.typ) + " " + number(p.major) + ":" + number(p.minor)
}

func number(n int64) string {
	if n == Any {
		return "*"
	}
	return strconv.FormatInt(n, 10)
}

// covers says whether every device of q is one of p.
func (p pattern) covers(q pattern) bool {
	return (p.typ == AnyType || p.typ == q.typ) &&
		(p.major == Any || p.major == q.major) &&
		(p.minor == Any || p.minor == q.minor)
}
