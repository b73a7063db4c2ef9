package json

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// peek skips white space and returns the next byte, or 0 at the end.
func (d *Decoder) peek() byte {
	for d.pos < len(d.src) {
		switch c := d.src[d.pos]; c {
		case ' ', '\t', '\n', '\r':
			d.pos++
		default:
			return c
		}
	}
	return 0
}

// plain marks the bytes that stand for themselves in a string: ASCII except
// controls, the quote and the backslash.
var plain = [256]bool{
	' ': true, '!': true, '#': true, '$': true, '%': true, '&': true, '\'': true, '(': true,
	')': true, '*': true, '+': true, ',': true, '-': true, '.': true, '/': true,
	'0': true, '1': true, '2': true, '3': true, '4': true, '5': true, '6': true, '7': true,
	'8': true, '9': true, ':': true, ';': true, '<': true, '=': true, '>': true, '?': true,
	'@': true, 'A': true, 'B': true, 'C': true, 'D': true, 'E': true, 'F': true, 'G': true,
	'H': true, 'I': true, 'J': true, 'K': true, 'L': true, 'M': true, 'N': true, 'O': true,
	'P': true, 'Q': true, 'R': true, 'S': true, 'T': true, 'U': true, 'V': true, 'W': true,
	'X': true, 'Y': true, 'Z': true, '[': true, ']': true, '^': true, '_': true, '`': true,
	'a': true, 'b': true, 'c': true, 'd': true, 'e': true, 'f': true, 'g': true, 'h': true,
	'i': true, 'j': true, 'k': true, 'l': true, 'm': true, 'n': true, 'o': true, 'p': true,
	'q': true, 'r': true, 's': true, 't': true, 'u': true, 'v': true, 'w': true, 'x': true,
	'y': true, 'z': true, '{': true, '|': true, '}': true, '~': true, 0x7f: true,
}

// scanString reads the string that starts at the current position, which holds
// its opening quote. Without escapes the result is a part of the document.
func (d *Decoder) scanString() string {
	start := d.pos + 1
	i := d.unescaped(start, start)
	switch {
	case i < 0:
		return ""
	case d.src[i] == '\\':
		return d.scanEscaped(start, i)
	}
	d.pos = i + 1
	return d.src[start:i]
}

// scanEscaped reads the rest of a string from its first backslash, at i.
func (d *Decoder) scanEscaped(start, i int) string {
	src := d.src
	var b strings.Builder
	b.WriteString(src[start:i])
	for src[i] == '\\' {
		r, size := d.scanEscape(i)
		if size == 0 {
			return ""
		}
		b.WriteRune(r)
		part := i + size
		if i = d.unescaped(start, part); i < 0 {
			return ""
		}
		b.WriteString(src[part:i])
	}
	d.pos = i + 1
	return b.String()
}

// skipString passes over a string without building it.
func (d *Decoder) skipString() {
	start := d.pos + 1
	i := d.unescaped(start, start)
	for i >= 0 && d.src[i] == '\\' {
		_, size := d.scanEscape(i)
		if size == 0 {
			return
		}
		i = d.unescaped(start, i+size)
	}
	if i >= 0 {
		d.pos = i + 1
	}
}

// unescaped passes over what stands for itself in the string that starts at
// start, from i on. It returns where the closing quote or a backslash is, or -1
// after an error.
func (d *Decoder) unescaped(start, i int) int {
	src := d.src
	for {
		// Unsigned, by which the compiler sees that i is in the text.
		for uint(i) < uint(len(src)) && plain[src[i]] {
			i++
		}
		if i >= len(src) {
			break
		}
		switch c := src[i]; {
		case c == '"' || c == '\\':
			return i
		case c < ' ':
			d.fail(i, "a control character in a string, write it as an escape")
			return -1
		}
		_, size := utf8.DecodeRuneInString(src[i:])
		if size == 1 {
			d.fail(i, "a byte that is not UTF-8 in a string")
			return -1
		}
		i += size
	}
	// The opening quote is pointed to: the mistake is there more likely than at
	// the end of the document.
	d.fail(start-1, "a string without closing quote")
	return -1
}

// scanEscape reads the escape at i, and returns its character and length; the
// length 0 tells of an error.
//
// A surrogate escape without its pair is refused where encoding/json would put
// U+FFFD: a path or an argument that silently differs from what was written is
// worse than an error.
func (d *Decoder) scanEscape(i int) (rune, int) {
	if i+1 < len(d.src) {
		switch c := d.src[i+1]; c {
		case '"', '\\', '/':
			return rune(c), 2
		case 'b':
			return '\b', 2
		case 'f':
			return '\f', 2
		case 'n':
			return '\n', 2
		case 'r':
			return '\r', 2
		case 't':
			return '\t', 2
		case 'u':
			r, ok := hex4(d.src, i)
			if !ok {
				break
			}
			if !utf16.IsSurrogate(r) {
				return r, 6
			}
			if low, ok := hex4(d.src, i+6); ok {
				if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
					return pair, 12
				}
			}
			d.fail(i, "half of a UTF-16 surrogate pair")
			return 0, 0
		}
	}
	d.fail(i, "an escape that JSON does not have")
	return 0, 0
}

// hex4 reads \uXXXX at i.
func hex4(s string, i int) (rune, bool) {
	if len(s)-i < 6 || s[i] != '\\' || s[i+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range []byte(s[i+2 : i+6]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// scanNumber reads a number's text. The second result tells whether it is
// written as an integer: without fraction and exponent.
func (d *Decoder) scanNumber() (text string, integer bool) {
	src, i := d.src, d.pos
	start := i
	if src[i] == '-' {
		i++
	}
	switch {
	case i < len(src) && src[i] == '0':
		i++
	case i < len(src) && '1' <= src[i] && src[i] <= '9':
		i = digits(src, i)
	default:
		d.pos = i
		d.failExpected("a digit")
		return "", false
	}
	integer = true
	if i < len(src) && src[i] == '.' {
		integer = false
		n := digits(src, i+1)
		if n == i+1 {
			d.pos = n
			d.failExpected("a digit after the decimal point")
			return "", false
		}
		i = n
	}
	if i < len(src) && (src[i] == 'e' || src[i] == 'E') {
		integer = false
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		n := digits(src, i)
		if n == i {
			d.pos = n
			d.failExpected("a digit in the exponent")
			return "", false
		}
		i = n
	}
	d.pos = i
	return src[start:i], integer
}

func digits(s string, i int) int {
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	return i
}

// scanLiteral reads true, false or null.
func (d *Decoder) scanLiteral(word string) bool {
	if strings.HasPrefix(d.src[d.pos:], word) {
		d.pos += len(word)
		return true
	}
	d.failExpected("a value")
	return false
}

// Skip passes over the current value, checking that it is JSON. It neither
// recurses nor allocates, whatever the value's depth.
func (d *Decoder) Skip() {
	var objects [maxDepth / 64]uint64 // one bit per level: object or array
	depth := 0
	for {
		switch c := d.peek(); c {
		case '"':
			d.skipString()
		case '{', '[':
			if len(d.path)+depth >= maxDepth {
				d.failDepth()
				return
			}
			d.pos++
			if c == '{' {
				objects[depth/64] |= 1 << (depth % 64)
			} else {
				objects[depth/64] &^= 1 << (depth % 64)
			}
			depth++
			if d.peek() == c+2 { // '}' is '{' + 2, ']' is '[' + 2
				d.pos++
				depth--
				break
			}
			if c == '{' && !d.skipKey() {
				return
			}
			continue
		case 't':
			d.scanLiteral("true")
		case 'f':
			d.scanLiteral("false")
		case 'n':
			d.scanLiteral("null")
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			d.scanNumber()
		default:
			d.failExpected("a value")
		}
		// A value has ended: close what ends with it.
		for {
			if d.err != nil || depth == 0 {
				return
			}
			object := objects[(depth-1)/64]>>((depth-1)%64)&1 != 0
			c := d.peek()
			if c == ',' {
				d.pos++
				if object && !d.skipKey() {
					return
				}
				break
			}
			if object && c == '}' || !object && c == ']' {
				d.pos++
				depth--
				continue
			}
			if object {
				d.failExpected("a comma or '}'")
			} else {
				d.failExpected("a comma or ']'")
			}
			return
		}
	}
}

func (d *Decoder) skipKey() bool {
	if d.peek() != '"' {
		d.failExpected("a key in double quotes")
		return false
	}
	d.skipString()
	if d.peek() != ':' {
		d.failExpected("a colon after the key")
		return false
	}
	d.pos++
	return d.err == nil
}
