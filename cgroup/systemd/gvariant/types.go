package gvariant

import "strings"

// typ is what is known of a type: the letters of a signature, and three that
// stand for a choice that is still open.
type typ struct {
	kind  byte
	elems []typ // of a and m one, of { two, of ( any number
}

const (
	anyType   = '*' // nothing is known: the element of [] and of nothing
	anyNumber = 'N' // a whole number, int32 if nothing else is said
	anyString = 'S' // a string, an object path or a signature

	numbers = "ynqiuxthd"
	strs    = "sog"
	basics  = "b" + numbers + strs
)

func arrayOf(t typ) typ { return typ{'a', []typ{t}} }
func maybeOf(t typ) typ { return typ{'m', []typ{t}} }

func (t typ) isBasic() bool {
	return t.kind == anyNumber || t.kind == anyString || strings.IndexByte(basics, t.kind) >= 0
}

// String is the signature.
func (t typ) String() string {
	s := string(t.kind)
	for _, e := range t.elems {
		s += e.String()
	}
	switch t.kind {
	case '(':
		s += ")"
	case '{':
		s += "}"
	}
	return s
}

// unify finds the type that two values of one array can both have.
func unify(a, b typ) (typ, bool) {
	switch {
	case a.kind == anyType:
		return b, true
	case b.kind == anyType:
		return a, true
	case a.kind == 'm' && b.kind != 'm':
		// A value where others may be nothing is just that value.
		inner, ok := unify(a.elems[0], b)
		return maybeOf(inner), ok
	case b.kind == 'm' && a.kind != 'm':
		inner, ok := unify(a, b.elems[0])
		return maybeOf(inner), ok
	case a.kind == anyNumber && (b.kind == anyNumber || strings.IndexByte(numbers, b.kind) >= 0):
		return b, true
	case b.kind == anyNumber && strings.IndexByte(numbers, a.kind) >= 0:
		return a, true
	case a.kind == anyString && (b.kind == anyString || strings.IndexByte(strs, b.kind) >= 0):
		return b, true
	case b.kind == anyString && strings.IndexByte(strs, a.kind) >= 0:
		return a, true
	case a.kind != b.kind || len(a.elems) != len(b.elems):
		return typ{}, false
	}
	u := typ{kind: a.kind, elems: make([]typ, len(a.elems))}
	for i := range a.elems {
		var ok bool
		if u.elems[i], ok = unify(a.elems[i], b.elems[i]); !ok {
			return typ{}, false
		}
	}
	return u, true
}

// settle makes the open choices as they are made when nothing else is said. It
// fails where nothing at all is known.
func settle(t typ) (typ, bool) {
	switch t.kind {
	case anyType:
		return t, false
	case anyNumber:
		return typ{kind: 'i'}, true
	case anyString:
		return typ{kind: 's'}, true
	}
	s := typ{kind: t.kind, elems: make([]typ, len(t.elems))}
	for i := range t.elems {
		var ok bool
		if s.elems[i], ok = settle(t.elems[i]); !ok {
			return t, false
		}
	}
	return s, true
}

// maxDepth bounds how deep a type or value can go; D-Bus has 64.
const maxDepth = 64

// parseType reads one complete type, and says how long it is.
func parseType(s string, depth int) (t typ, n int, ok bool) {
	if s == "" || depth > maxDepth {
		return typ{}, 0, false
	}
	c := s[0]
	switch {
	case c == 'v' || strings.IndexByte(basics, c) >= 0:
		return typ{kind: c}, 1, true
	case c == 'a' || c == 'm':
		elem, n, ok := parseType(s[1:], depth+1)
		return typ{c, []typ{elem}}, 1 + n, ok
	case c == '(':
		t, n = typ{kind: c}, 1
		for n < len(s) && s[n] != ')' {
			elem, m, ok := parseType(s[n:], depth+1)
			if !ok {
				return typ{}, 0, false
			}
			t.elems = append(t.elems, elem)
			n += m
		}
		return t, n + 1, n < len(s)
	case c == '{':
		key, m, ok := parseType(s[1:], depth+1)
		if !ok || !key.isBasic() {
			return typ{}, 0, false
		}
		value, k, ok := parseType(s[1+m:], depth+1)
		n = 1 + m + k
		if !ok || n >= len(s) || s[n] != '}' {
			return typ{}, 0, false
		}
		return typ{c, []typ{key, value}}, n + 1, true
	}
	return typ{}, 0, false
}

// keywordType gives the type that a word before a value stands for.
func keywordType(word string) (byte, bool) {
	switch word {
	case "boolean":
		return 'b', true
	case "byte":
		return 'y', true
	case "int16":
		return 'n', true
	case "uint16":
		return 'q', true
	case "int32":
		return 'i', true
	case "uint32":
		return 'u', true
	case "int64":
		return 'x', true
	case "uint64":
		return 't', true
	case "handle":
		return 'h', true
	case "double":
		return 'd', true
	case "string":
		return 's', true
	case "objectpath":
		return 'o', true
	case "signature":
		return 'g', true
	}
	return 0, false
}
