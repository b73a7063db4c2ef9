package unit

import (
	"fmt"
	"strings"
)

// maxName is UNIT_NAME_MAX of systemd, which has room for the zero byte.
const maxName = 255

// checkName has systemd's rules for a unit's name (unit_name_is_valid).
func checkName(name string) error {
	switch {
	case len(name) > maxName:
		return fmt.Errorf("unit name %.40q… is longer than %d bytes", name, maxName)
	case strings.Contains(name, "/"):
		return fmt.Errorf("unit name %q has a slash", name)
	case strings.HasPrefix(name, "."):
		return fmt.Errorf("unit name %q begins with a dot", name)
	}
	switch stem := name[:max(strings.LastIndexByte(name, '.'), 0)]; strings.IndexByte(stem, '@') {
	case -1:
	case 0:
		return fmt.Errorf("unit name %q begins with an @", name)
	case len(stem) - 1:
		return fmt.Errorf("unit name %q is one of a template: something has to stand behind the @", name)
	}
	for i := range len(name) {
		if !validByte(name[i]) && name[i] != '@' {
			return fmt.Errorf("unit name %q has %q, which no unit may have", name, name[i:i+1])
		}
	}
	return nil
}

// validByte says what a name may have apart from the @ of instances (VALID_CHARS
// of systemd).
func validByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || strings.IndexByte(":-_.\\", c) >= 0
}

// escapeForeign writes the bytes that a unit name cannot have as \xNN. Unlike
// Escape it leaves dashes alone: in the name of a scope they mean nothing.
func escapeForeign(name string) string {
	clean := true
	for i := range len(name) {
		clean = clean && (validByte(name[i]) || name[i] == '@')
	}
	if clean {
		return name
	}
	var b []byte
	for i := range len(name) {
		if c := name[i]; validByte(c) || c == '@' || c == '/' {
			b = append(b, c)
		} else {
			b = appendHex(b, c)
		}
	}
	return string(b)
}

func appendHex(b []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'x', hex[c>>4], hex[c&15])
}

// Escape writes one name the way systemd-escape(1) does: letters, digits, ":",
// "_" and dots stay, a slash becomes a dash, and all else \xNN, the dash itself
// and a dot at the beginning with it.
func Escape(name string) string {
	var b []byte
	for i := range len(name) {
		switch c := name[i]; {
		case c == '/':
			b = append(b, '-')
		case c == '.' && i == 0, c == '-', c == '\\', !validByte(c):
			b = appendHex(b, c)
		default:
			b = append(b, c)
		}
	}
	return string(b)
}

// Unescape undoes Escape.
func Unescape(name string) (string, error) {
	var b []byte
	for i := 0; i < len(name); i++ {
		switch c := name[i]; c {
		case '-':
			b = append(b, '/')
		case '\\':
			if i+3 >= len(name) || name[i+1] != 'x' {
				return "", fmt.Errorf("unit name %q: column %d: a backslash without xNN", name, i+1)
			}
			high, low := hexDigit(name[i+2]), hexDigit(name[i+3])
			if high < 0 || low < 0 {
				return "", fmt.Errorf("unit name %q: column %d: %q is not a hexadecimal number", name, i+1, name[i+2:i+4])
			}
			b = append(b, byte(high<<4|low))
			i += 3
		default:
			b = append(b, c)
		}
	}
	return string(b), nil
}

func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
