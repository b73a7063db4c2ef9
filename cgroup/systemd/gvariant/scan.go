package gvariant

import (
	"strconv"
	"unicode/utf8"
)

// token is a piece of the text.
type token struct {
	kind  tokenKind
	at    int    // offset of its first byte
	text  string // as it stands; the content of strings and byte strings
	bytes bool
	typ   typ // of an annotation
}

type tokenKind byte

const (
	endToken    tokenKind = iota
	punctToken            // one of ()[]{}<>,:
	typeToken             // @ and a type
	wordToken             // a keyword
	numberToken           // a number
	stringToken           // a quoted string, or with bytes a byte string
)

type scanner struct {
	text string
	pos  int
}

func fail(at int, message string) error { return &Error{Column: at + 1, Message: message} }

func (s *scanner) next() (token, error) {
	for s.pos < len(s.text) && isSpace(s.text[s.pos]) {
		s.pos++
	}
	at := s.pos
	if at == len(s.text) {
		return token{kind: endToken, at: at}, nil
	}
	c := s.text[at]
	switch {
	case isPunct(c):
		s.pos++
		return token{kind: punctToken, at: at, text: s.text[at:s.pos]}, nil
	case c == '"' || c == '\'':
		return s.quoted(at, at, false)
	case c == 'b' && at+1 < len(s.text) && (s.text[at+1] == '"' || s.text[at+1] == '\''):
		return s.quoted(at, at+1, true)
	case c == '@':
		t, n, ok := parseType(s.text[at+1:], 0)
		if !ok {
			return token{}, fail(at, "no type after the @")
		}
		s.pos += 1 + n
		return token{kind: typeToken, at: at, typ: t}, nil
	case isDigit(c) || c == '+' || c == '-' || c == '.':
		return s.number(at), nil
	case isLetter(c):
		for s.pos < len(s.text) && (isLetter(s.text[s.pos]) || isDigit(s.text[s.pos])) {
			s.pos++
		}
		word := s.text[at:s.pos]
		kind := wordToken
		if word == "inf" || word == "infinity" || word == "nan" {
			kind = numberToken
		}
		return token{kind: kind, at: at, text: word}, nil
	}
	r, _ := utf8.DecodeRuneInString(s.text[at:])
	return token{}, fail(at, "unexpected "+strconv.QuoteRune(r))
}

// number takes all that could be one; what it is worth is found out later.
func (s *scanner) number(at int) token {
	hex := false
	for ; s.pos < len(s.text); s.pos++ {
		c := s.text[s.pos]
		if c == 'x' || c == 'X' {
			hex = true
		}
		sign := c == '+' || c == '-'
		if sign && s.pos > at {
			if e := s.text[s.pos-1]; hex || e != 'e' && e != 'E' {
				break
			}
		}
		if !sign && !isDigit(c) && !isLetter(c) && c != '.' {
			break
		}
	}
	return token{kind: numberToken, at: at, text: s.text[at:s.pos]}
}

// quoted reads a string or byte string whose quote is at open.
func (s *scanner) quoted(at, open int, bytes bool) (token, error) {
	quote := s.text[open]
	var b []byte
	for i := open + 1; i < len(s.text); {
		c := s.text[i]
		switch {
		case c == quote:
			s.pos = i + 1
			return token{kind: stringToken, at: at, text: string(b), bytes: bytes}, nil
		case c == '\\':
			n, out, err := s.escape(i, bytes)
			if err != nil {
				return token{}, err
			}
			b = append(b, out...)
			i += n
		default:
			r, n := utf8.DecodeRuneInString(s.text[i:])
			if r == utf8.RuneError && n <= 1 {
				return token{}, fail(i, "not UTF-8")
			}
			b = append(b, s.text[i:i+n]...)
			i += n
		}
	}
	return token{}, fail(at, "the string is not terminated")
}

// escape reads what a backslash begins. Strings have the escapes of C and
// Unicode's, byte strings those of C and octal numbers; any other byte stands
// for itself, and a line that ends in a backslash goes on in the next.
func (s *scanner) escape(at int, bytes bool) (n int, out []byte, err error) {
	if at+1 >= len(s.text) {
		return 0, nil, fail(at, "nothing after the backslash")
	}
	c := s.text[at+1]
	switch c {
	case 'a':
		return 2, []byte{'\a'}, nil
	case 'b':
		return 2, []byte{'\b'}, nil
	case 'f':
		return 2, []byte{'\f'}, nil
	case 'n':
		return 2, []byte{'\n'}, nil
	case 'r':
		return 2, []byte{'\r'}, nil
	case 't':
		return 2, []byte{'\t'}, nil
	case 'v':
		return 2, []byte{'\v'}, nil
	case '\n':
		return 2, nil, nil
	case 'u', 'U':
		if !bytes {
			return s.unicodeEscape(at, c)
		}
	case '0', '1', '2', '3', '4', '5', '6', '7':
		if bytes {
			return s.octalEscape(at)
		}
	}
	r, size := utf8.DecodeRuneInString(s.text[at+1:])
	if r == utf8.RuneError && size <= 1 {
		return 0, nil, fail(at+1, "not UTF-8")
	}
	return 1 + size, []byte(s.text[at+1 : at+1+size]), nil
}

func (s *scanner) unicodeEscape(at int, c byte) (int, []byte, error) {
	digits := 4
	if c == 'U' {
		digits = 8
	}
	end := at + 2 + digits
	if end > len(s.text) {
		return 0, nil, fail(at, "the escape wants "+strconv.Itoa(digits)+" hexadecimal digits")
	}
	n, err := strconv.ParseUint(s.text[at+2:end], 16, 32)
	if err != nil {
		return 0, nil, fail(at, "the escape wants "+strconv.Itoa(digits)+" hexadecimal digits")
	}
	if n == 0 || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return 0, nil, fail(at, "the escape is not a character that a string can have")
	}
	return 2 + digits, utf8.AppendRune(nil, rune(n)), nil
}

func (s *scanner) octalEscape(at int) (int, []byte, error) {
	n, i := 0, at+1
	for ; i < len(s.text) && i < at+4 && s.text[i] >= '0' && s.text[i] <= '7'; i++ {
		n = n*8 + int(s.text[i]-'0')
	}
	if n > 255 {
		return 0, nil, fail(at, "the escape is more than a byte")
	}
	return i - at, []byte{byte(n)}, nil
}

func isSpace(c byte) bool  { return c == ' ' || c >= '\t' && c <= '\r' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isPunct(c byte) bool {
	switch c {
	case '(', ')', '[', ']', '{', '}', '<', '>', ',', ':':
		return true
	}
	return false
}
