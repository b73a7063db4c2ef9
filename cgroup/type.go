package cgroup

import (
	"strings"

	"golang.org/x/sys/unix"
)

// Type is what a version 2 group may hold, by its cgroup.type.
type Type string

// The types of cgroup.type. The root and version 1 groups have none and count as Domain.
const (
	Domain         Type = "domain"
	DomainThreaded Type = "domain threaded" // the root of a threaded subtree
	DomainInvalid  Type = "domain invalid"  // below a threaded one, and not threaded: unusable as it is
	Threaded       Type = "threaded"        // holds threads, of processes of the subtree's root
)

const invalidHint = "its type is \"domain invalid\", since it lies in a threaded subtree: " +
	"write \"threaded\" to its cgroup.type, or put it elsewhere"

// Type tells what the group may hold.
func (g *Group) Type() (Type, error) {
	n := g.unified()
	if n == nil {
		return Domain, nil
	}
	kind, err := typeOf(n)
	if err != nil {
		return "", &Error{Op: "read", Path: n.full("cgroup.type"), Err: err}
	}
	return kind, nil
}

func typeOf(n *node) (Type, error) {
	if n.Version == 1 {
		return Domain, nil
	}
	text, err := readRecord(unix.AT_FDCWD, n.full("cgroup.type"), make([]byte, 64))
	if err == unix.ENOENT && n.path == "/" {
		return Domain, nil
	}
	return Type(strings.TrimSpace(string(text))), err
}
