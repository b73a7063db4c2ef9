package toml

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is a scalar, as written.
type Value string

// Bool reads a truth.
func (v Value) Bool(p *bool) error {
	switch v {
	case "true", "false":
		*p = v == "true"
		return nil
	}
	return fmt.Errorf("%s is neither true nor false", v)
}

// Uint32 reads a whole number.
func (v Value) Uint32(p *uint32) error {
	n, err := strconv.ParseUint(strings.ReplaceAll(string(v), "_", ""), 10, 32)
	if err != nil {
		return fmt.Errorf("%s is not a whole number of 32 bits", v)
	}
	*p = uint32(n)
	return nil
}

// String reads a string.
func (v Value) String(p *string) error {
	s, rest, err := quoted(string(v))
	if err != nil {
		return err
	}
	if rest != "" {
		return fmt.Errorf("%q stands after the string", rest)
	}
	*p = s
	return nil
}

// Parse reads lines of KEY = VALUE and comments, and gives each pair to set. An error names its
// line.
func Parse(text string, set func(key string, v Value) error) error {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, rest, found := strings.Cut(line, "=")
		key = strings.Trim(strings.TrimSpace(key), `"'`)
		if !found || key == "" || line[0] == '[' {
			return fmt.Errorf("line %d: %q is not of the form KEY = VALUE", n, line)
		}
		v := strings.TrimSpace(rest)
		if v != "" && (v[0] == '"' || v[0] == '\'') {
			_, tail, err := quoted(v)
			if err != nil {
				return fmt.Errorf("line %d: %s: %w", n, key, err)
			}
			v = v[:len(v)-len(tail)]
			if tail = strings.TrimSpace(tail); tail != "" && tail[0] != '#' {
				return fmt.Errorf("line %d: %s: %q stands after the string", n, key, tail)
			}
		} else {
			v, _, _ = strings.Cut(v, "#")
			v = strings.TrimSpace(v)
		}
		if err := set(key, Value(v)); err != nil {
			return fmt.Errorf("line %d: %s: %w", n, key, err)
		}
	}
	return nil
}

// quoted reads a basic or literal string off the front of s.
func quoted(s string) (text, rest string, err error) {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		return "", "", fmt.Errorf("%s is not a string", s)
	}
	if s[0] == '\'' {
		end := strings.IndexByte(s[1:], '\'')
		if end < 0 {
			return "", "", fmt.Errorf("%s has no end", s)
		}
		return s[1 : 1+end], s[2+end:], nil
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '"':
			return b.String(), s[i+1:], nil
		case '\\':
			r, size, err := escape(s[i+1:])
			if err != nil {
				return "", "", err
			}
			b.WriteRune(r)
			i += size
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", fmt.Errorf("%s has no end", s)
}

// escape reads what follows a backslash.
func escape(s string) (r rune, size int, err error) {
	if s == "" {
		return 0, 0, fmt.Errorf("a string ends in a backslash")
	}
	switch s[0] {
	case '"', '\\':
		return rune(s[0]), 1, nil
	case 'n':
		return '\n', 1, nil
	case 't':
		return '\t', 1, nil
	case 'r':
		return '\r', 1, nil
	case 'b':
		return '\b', 1, nil
	case 'f':
		return '\f', 1, nil
	case 'u', 'U':
		size = 4
		if s[0] == 'U' {
			size = 8
		}
		if len(s) > size {
			if n, err := strconv.ParseUint(s[1:1+size], 16, 32); err == nil && utf8.ValidRune(rune(n)) {
				return rune(n), 1 + size, nil
			}
		}
	}
	return 0, 0, fmt.Errorf(`\%c is not an escape of a string`, s[0])
}
