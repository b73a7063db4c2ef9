package yaml

import (
	"fmt"
	"strings"
)

// splitKey takes the key from the beginning of a line; rest is without the space
// and the comment around it.
func splitKey(text string, number int) (key, rest string, err error) {
	if text == "-" || strings.HasPrefix(text, "- ") {
		return "", "", &Error{number, "a list; no key takes one: write key: value lines"}
	}
	if text[0] == '"' || text[0] == '\'' {
		if key, rest, err = quoted(text, number); err != nil {
			return "", "", err
		}
	} else {
		i := colon(text)
		if i < 0 {
			return "", "", &Error{number, fmt.Sprintf("%.40q is no key with its value: a colon with a space behind it is missing", text)}
		}
		key, rest = strings.TrimRight(text[:i], " \t"), text[i:]
		if err := plainStart(key, number); err != nil {
			return "", "", err
		}
	}
	rest = strings.TrimLeft(rest, " ")
	if rest == "" || rest[0] != ':' || len(rest) > 1 && rest[1] != ' ' && rest[1] != '\t' {
		return "", "", &Error{number, fmt.Sprintf("after the key %s a colon with a space behind it is missing", key)}
	}
	if key == "" {
		return "", "", &Error{number, "a key is missing before the colon"}
	}
	rest = strings.Trim(rest[1:], " \t")
	if strings.HasPrefix(rest, "#") {
		rest = ""
	}
	return key, rest, nil
}

// colon finds the colon that ends a plain key; -1 if there is none.
func colon(text string) int {
	for i := range len(text) {
		if text[i] == '#' && i > 0 && text[i-1] == ' ' {
			return -1
		}
		if text[i] == ':' && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\t') {
			return i
		}
	}
	return -1
}

// plainStart refuses what means something else to YAML at the start of a scalar.
func plainStart(text string, number int) error {
	if text == "" {
		return nil
	}
	what := ""
	switch text[0] {
	case '&', '*':
		what = "anchors and aliases are not taken"
	case '!':
		what = "tags are not taken"
	case '|', '>':
		what = "block scalars are not taken"
	case '[', ']':
		what = "a list; no key takes one"
	case '{', '}', ',', '@', '`', '%':
		what = fmt.Sprintf("%q cannot begin a value: put it into quotes", text[:1])
	case '?', ':':
		if len(text) == 1 || text[1] == ' ' {
			what = fmt.Sprintf("%q cannot begin a value: put it into quotes", text[:1])
		}
	case '-':
		if len(text) == 1 || text[1] == ' ' {
			what = "a list; no key takes one: write key: value lines"
		}
	}
	if what != "" {
		return &Error{number, what}
	}
	return nil
}

// value reads what stands behind a key.
func value(text string, number, depth int) (*Node, error) {
	v, rest, err := inline(text, number, depth, false)
	if err != nil {
		return nil, err
	}
	trimmed := strings.TrimLeft(rest, " \t")
	if trimmed != "" && (trimmed[0] != '#' || trimmed == rest) {
		return nil, &Error{number, fmt.Sprintf("%.40q behind the end of the value", trimmed)}
	}
	return v, nil
}

// inline reads one value from the beginning of a text; in braces a plain one ends
// at a comma or a brace.
func inline(text string, number, depth int, braces bool) (v *Node, rest string, err error) {
	switch text[0] {
	case '{':
		return flow(text, number, depth+1)
	case '"', '\'':
		s, rest, err := quoted(text, number)
		return &Node{Line: number, Text: s}, rest, err
	}
	if err := plainStart(text, number); err != nil {
		return nil, "", err
	}
	end := len(text)
	if i := strings.Index(text, " #"); i >= 0 {
		end = i
	}
	if braces {
		if i := strings.IndexAny(text[:end], ",{}[]"); i >= 0 {
			end = i
		}
	}
	plain := strings.TrimRight(text[:end], " \t")
	if colon(plain) >= 0 {
		return nil, "", &Error{number, fmt.Sprintf("%.40q has a colon with a space in it: put it into quotes, or on a line of its own", plain)}
	}
	return &Node{Line: number, Text: plain}, text[end:], nil
}

// flow reads a mapping in braces, which stands on one line.
func flow(text string, number, depth int) (*Node, string, error) {
	if depth >= maxDepth {
		return nil, "", &Error{number, "nested too deeply"}
	}
	m := &Node{Line: number, Mapping: true}
	rest := strings.TrimLeft(text[1:], " \t")
	for {
		if rest == "" {
			return nil, "", &Error{number, "the closing brace is missing; a mapping in braces stands on one line"}
		}
		if rest[0] == '}' {
			return m, rest[1:], nil
		}
		key, after, err := flowKey(rest, number)
		if err != nil {
			return nil, "", err
		}
		v := &Node{Line: number}
		rest = strings.TrimLeft(after, " \t")
		if rest != "" && rest[0] != ',' && rest[0] != '}' {
			if v, rest, err = inline(rest, number, depth, true); err != nil {
				return nil, "", err
			}
		}
		if err := m.add(Member{key, number, v}); err != nil {
			return nil, "", err
		}
		rest = strings.TrimLeft(rest, " \t")
		switch {
		case strings.HasPrefix(rest, ","):
			rest = strings.TrimLeft(rest[1:], " \t")
		case rest != "" && rest[0] != '}':
			return nil, "", &Error{number, fmt.Sprintf("a comma or a closing brace is missing before %.20q", rest)}
		}
	}
}

// flowKey takes a key and its colon.
func flowKey(text string, number int) (key, rest string, err error) {
	if text[0] == '"' || text[0] == '\'' {
		key, rest, err = quoted(text, number)
		if err != nil {
			return "", "", err
		}
		rest = strings.TrimLeft(rest, " ")
		if !strings.HasPrefix(rest, ":") {
			return "", "", &Error{number, fmt.Sprintf("after the key %s a colon is missing", key)}
		}
		return key, rest[1:], nil
	}
	end := strings.IndexAny(text, ",{}[]")
	if end < 0 {
		end = len(text)
	}
	i := colon(text[:end])
	if i <= 0 {
		return "", "", &Error{number, fmt.Sprintf("%.40q is no key with its value: a colon with a space behind it is missing", text[:end])}
	}
	key = strings.TrimRight(text[:i], " \t")
	return key, text[i+1:], plainStart(key, number)
}

// quoted reads a scalar in quotes, which ends on its line.
func quoted(text string, number int) (string, string, error) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\'' && text[0] == '\'' && strings.HasPrefix(text[i:], "''"):
			b.WriteByte(c)
			i++
		case c == text[0]:
			return b.String(), text[i+1:], nil
		case c == '\\' && text[0] == '"':
			i++
			if i == len(text) {
				continue
			}
			j := strings.IndexByte(`\"nt/`, text[i])
			if j < 0 {
				return "", "", &Error{number, fmt.Sprintf("the escape \\%c; known are \\\\ \\\" \\/ \\n \\t", text[i])}
			}
			b.WriteByte("\\\"\n\t/"[j])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", &Error{number, "the closing quote is missing; text in quotes stands on one line"}
}
