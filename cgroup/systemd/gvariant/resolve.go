package gvariant

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// resolve makes the value of a node in a settled type.
func (n node) resolve(t typ) (Value, error) {
	v := Value{Type: t.String(), Column: n.at + 1}
	if t.kind == 'm' && n.kind != justNode && n.kind != nothingNode {
		inner, err := n.resolve(t.elems[0])
		v.Members = []Value{inner}
		return v, err
	}
	switch n.kind {
	case boolNode:
		v.Bool = n.text == "true"
	case numberNode:
		return v, n.number(t.kind, &v)
	case stringNode:
		return v, n.str(t.kind, &v)
	case bytesNode:
		// A byte string ends with a zero byte, as C's do.
		for i := range len(n.text) + 1 {
			b := Value{Type: "y", Column: v.Column}
			if i < len(n.text) {
				b.Uint = uint64(n.text[i])
			}
			v.Members = append(v.Members, b)
		}
	case variantNode:
		inner := n.elements[0]
		settled, ok := settle(inner.typ)
		if !ok {
			return v, fail(inner.at, "the type cannot be told: write it before the value, as in @as []")
		}
		return v, n.members(&v, func(int) typ { return settled })
	case arrayNode, justNode:
		return v, n.members(&v, func(int) typ { return t.elems[0] })
	case tupleNode, entryNode:
		return v, n.members(&v, func(i int) typ { return t.elems[i] })
	}
	return v, nil
}

func (n node) members(v *Value, t func(int) typ) error {
	for i, e := range n.elements {
		m, err := e.resolve(t(i))
		if err != nil {
			return err
		}
		v.Members = append(v.Members, m)
	}
	return nil
}

// isFloat says whether a number can only be a double.
func isFloat(s string) bool {
	s = strings.TrimLeft(s, "+-")
	if s == "inf" || s == "infinity" || s == "nan" {
		return true
	}
	if strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") {
		return false
	}
	return strings.ContainsAny(s, ".eE")
}

func (n node) number(kind byte, v *Value) error {
	digits := strings.TrimLeft(n.text, "+-")
	if len(n.text)-len(digits) > 1 {
		return n.badNumber(nil, v.Type)
	}
	negative := strings.HasPrefix(n.text, "-")
	hex := strings.HasPrefix(digits, "0x") || strings.HasPrefix(digits, "0X")
	if kind == 'd' {
		text := n.text
		if hex {
			text += "p0" // without an exponent Go does not take it for a number
		}
		d, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return n.badNumber(err, v.Type)
		}
		v.Double = d
		return nil
	}
	base := 10
	switch {
	case hex:
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0':
		digits, base = digits[1:], 8
	}
	abs, err := strconv.ParseUint(digits, base, 64)
	if err != nil {
		return n.badNumber(err, v.Type)
	}
	most, signed := numberRange(kind)
	switch {
	case signed && negative && abs <= most+1:
		v.Int = -int64(abs)
	case signed && !negative && abs <= most:
		v.Int = int64(abs)
	case !signed && !negative && abs <= most:
		v.Uint = abs
	case !signed && negative && abs == 0:
	default:
		return fail(n.at, n.text+" is out of range for type "+strconv.Quote(v.Type))
	}
	return nil
}

func (n node) badNumber(err error, t string) error {
	if errors.Is(err, strconv.ErrRange) {
		return fail(n.at, n.text+" is out of range for type "+strconv.Quote(t))
	}
	return fail(n.at, strconv.Quote(n.text)+" is not a number")
}

func numberRange(kind byte) (most uint64, signed bool) {
	switch kind {
	case 'y':
		return math.MaxUint8, false
	case 'n':
		return math.MaxInt16, true
	case 'q':
		return math.MaxUint16, false
	case 'i', 'h':
		return math.MaxInt32, true
	case 'u':
		return math.MaxUint32, false
	case 'x':
		return math.MaxInt64, true
	}
	return math.MaxUint64, false // t
}

func (n node) str(kind byte, v *Value) error {
	v.Text = n.text
	switch kind {
	case 'o':
		if !isObjectPath(n.text) {
			return fail(n.at, strconv.Quote(n.text)+" is not an object path")
		}
	case 'g':
		for rest := n.text; rest != ""; {
			_, size, ok := parseType(rest, 0)
			if !ok || len(n.text) > 255 {
				return fail(n.at, strconv.Quote(n.text)+" is not a signature")
			}
			rest = rest[size:]
		}
	default:
		if strings.Contains(n.text, "\x00") {
			return fail(n.at, "a string cannot have a zero byte")
		}
	}
	return nil
}

// isObjectPath has the rules of the D-Bus specification.
func isObjectPath(s string) bool {
	if s == "/" {
		return true
	}
	if !strings.HasPrefix(s, "/") {
		return false
	}
	for part := range strings.SplitSeq(s[1:], "/") {
		if part == "" {
			return false
		}
		for i := range len(part) {
			if c := part[i]; !isLetter(c) && !isDigit(c) && c != '_' {
				return false
			}
		}
	}
	return true
}
