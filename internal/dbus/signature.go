package dbus

import (
	"fmt"
	"strings"
)

// A Signature is a row of types, such as "sa(sv)".
type Signature string

// An ObjectPath names an object, such as "/org/freedesktop/systemd1".
type ObjectPath string

// Limits of the specification.
const (
	maxSignature = 255
	maxDepth     = 64 // 32 arrays and 32 structs; each variant begins again there, not here
	maxArray     = 64 << 20
)

const basicTypes = "ybnqiuxtdsogh"

// next splits off the first complete type.
func (s Signature) next() (first, rest Signature, err error) {
	n, err := typeLength(string(s), 0)
	if err != nil {
		return "", "", err
	}
	return s[:n], s[n:], nil
}

// typeLength is the length of the first complete type.
func typeLength(s string, depth int) (int, error) {
	if s == "" || depth > maxDepth {
		return 0, fmt.Errorf("signature %q: a type is missing, or too deep inside others", s)
	}
	switch c := s[0]; {
	case c == 'v' || strings.IndexByte(basicTypes, c) >= 0:
		return 1, nil
	case c == 'a' && len(s) > 1 && s[1] == '{':
		return entryLength(s, depth)
	case c == 'a':
		n, err := typeLength(s[1:], depth+1)
		return n + 1, err
	case c == '(':
		at := 1
		for at < len(s) && s[at] != ')' {
			n, err := typeLength(s[at:], depth+1)
			if err != nil {
				return 0, err
			}
			at += n
		}
		if at == 1 || at == len(s) {
			return 0, fmt.Errorf("signature %q: a struct is empty or has no end", s)
		}
		return at + 1, nil
	}
	return 0, fmt.Errorf("signature %q: there is no type %q", s, s[0])
}

// entryLength is the length of an array of dictionary entries.
func entryLength(s string, depth int) (int, error) {
	const key = 2
	if len(s) <= key || strings.IndexByte(basicTypes, s[key]) < 0 {
		return 0, fmt.Errorf("signature %q: the key of a dictionary is not a basic type", s)
	}
	n, err := typeLength(s[key+1:], depth+2)
	if err != nil {
		return 0, err
	}
	end := key + 1 + n
	if end >= len(s) || s[end] != '}' {
		return 0, fmt.Errorf("signature %q: a dictionary has no end", s)
	}
	return end + 1, nil
}

// check refuses what is no row of complete types.
func (s Signature) check() error {
	if len(s) > maxSignature {
		return fmt.Errorf("a signature of %d bytes, where %d are allowed", len(s), maxSignature)
	}
	for rest := s; rest != ""; {
		var err error
		if _, rest, err = rest.next(); err != nil {
			return err
		}
	}
	return nil
}

// alignment is that of a type by its first letter.
func alignment(c byte) int {
	switch c {
	case 'n', 'q':
		return 2
	case 'b', 'i', 'u', 'h', 's', 'o', 'a':
		return 4
	case 'x', 't', 'd', '(', '{':
		return 8
	}
	return 1 // y, g, v
}
