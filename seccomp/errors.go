package seccomp

import (
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// A ProfileError is an entry of the profile that can't be followed.
type ProfileError struct {
	Pointer string // JSON pointer of the entry, from the profile on: /syscalls/3/args/0/op
	Problem string
}

func (e *ProfileError) Error() string {
	return e.Pointer + ": " + e.Problem
}

// A TooLargeError is a profile whose filter is longer than the kernel takes.
type TooLargeError struct {
	Limit int // the kernel's BPF_MAXINSNS
}

func (e *TooLargeError) Error() string {
	return "the filter has more than " + strconv.Itoa(e.Limit) +
		" instructions, which is as many as the kernel takes; name fewer architectures, or fewer argument values"
}

func unknownValue(at, what, value string, known []string) error {
	if value == "" {
		return &ProfileError{at, "the " + what + " is missing; it is one of " + strings.Join(known, ", ")}
	}
	return &ProfileError{at, "unknown " + what + " " + strconv.Quote(value) + "; it is one of " + strings.Join(known, ", ")}
}

// pointer joins the parts of a JSON pointer. They are names of the spec and indexes: there is
// nothing to escape.
func pointer(parts ...any) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		switch p := p.(type) {
		case string:
			b.WriteString(p)
		case int:
			b.WriteString(strconv.Itoa(p))
		}
	}
	return b.String()
}

// An UnsupportedArchError is a machine that the OCI runtime spec has no name for, so that no
// profile can be meant for it.
type UnsupportedArchError struct {
	Arch specs.Arch
}

func (e *UnsupportedArchError) Error() string {
	return "the OCI runtime spec names no seccomp architecture " + strconv.Quote(string(e.Arch))
}
