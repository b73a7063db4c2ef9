package yaml

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Node is a value: a scalar, or a mapping.
type Node struct {
	Line    int
	Text    string // of a scalar
	Mapping bool
	Members []Member // of a mapping, in the order of the text
}

// Member is a key with its value.
type Member struct {
	Key   string
	Line  int
	Value *Node
}

// Error is a text that is not understood.
type Error struct {
	Line    int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

// maxDepth bounds nesting; no configuration has more than a few levels.
const maxDepth = 16

type line struct {
	number, indent int
	text           string // without indentation and end
}

type parser struct {
	lines []line
	at    int
}

// Parse reads a document. An empty one is an empty mapping.
func Parse(text string) (*Node, error) {
	p := &parser{}
	if err := p.split(text); err != nil {
		return nil, err
	}
	if len(p.lines) == 0 {
		return &Node{Line: 1, Mapping: true}, nil
	}
	if first := p.lines[0]; first.indent != 0 {
		return nil, &Error{first.number, "the first key is indented"}
	}
	if p.lines[0].text[0] == '{' && len(p.lines) == 1 {
		return value(p.lines[0].text, p.lines[0].number, 0)
	}
	root, err := p.block(0, 0)
	if err == nil && p.at < len(p.lines) {
		l := p.lines[p.at]
		err = &Error{l.number, fmt.Sprintf("indented by %d, which none of the lines above it is", l.indent)}
	}
	if err != nil {
		return nil, err
	}
	return root, nil
}

// split gives the lines that say something.
func (p *parser) split(text string) error {
	if !utf8.ValidString(text) {
		return &Error{1 + strings.Count(text[:invalidAt(text)], "\n"), "this is not UTF-8"}
	}
	text = strings.TrimPrefix(text, "\ufeff")
	number := 0
	for raw := range strings.SplitSeq(text, "\n") {
		number++
		raw = strings.TrimRight(strings.TrimSuffix(raw, "\r"), " ")
		body := strings.TrimLeft(raw, " ")
		switch {
		case body == "" || body[0] == '#':
			continue
		case body[0] == '\t':
			return &Error{number, "a tab in the indentation; YAML takes spaces only"}
		case raw == "---" && len(p.lines) == 0 || raw == "..." && number > 1:
			continue
		case strings.HasPrefix(raw, "---"):
			return &Error{number, "a second document; one file is one configuration"}
		case raw[0] == '%':
			return &Error{number, "YAML directives are not taken"}
		}
		for _, r := range body {
			if r < ' ' && r != '\t' || r == 0x7f {
				return &Error{number, fmt.Sprintf("the control character %q", r)}
			}
		}
		p.lines = append(p.lines, line{number, len(raw) - len(body), body})
	}
	return nil
}

func invalidAt(text string) int {
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") {
			return i
		}
	}
	return 0
}

// block reads the mapping whose keys stand at an indentation.
func (p *parser) block(indent, depth int) (*Node, error) {
	m := &Node{Line: p.lines[p.at].number, Mapping: true}
	if depth == maxDepth {
		return nil, &Error{m.Line, "nested too deeply"}
	}
	for p.at < len(p.lines) && p.lines[p.at].indent == indent {
		l := p.lines[p.at]
		key, rest, err := splitKey(l.text, l.number)
		if err != nil {
			return nil, err
		}
		p.at++
		var v *Node
		switch {
		case rest != "":
			v, err = value(rest, l.number, depth)
			if err == nil && p.at < len(p.lines) && p.lines[p.at].indent > indent {
				err = &Error{p.lines[p.at].number, fmt.Sprintf("indented below %s, which has a value already", key)}
			}
		case p.at < len(p.lines) && p.lines[p.at].indent > indent:
			v, err = p.block(p.lines[p.at].indent, depth+1)
			if err == nil && p.at < len(p.lines) && p.lines[p.at].indent > indent {
				l := p.lines[p.at]
				err = &Error{l.number, fmt.Sprintf("indented by %d, which none of the lines above it is", l.indent)}
			}
		default:
			v = &Node{Line: l.number}
		}
		if err != nil {
			return nil, err
		}
		if err := m.add(Member{key, l.number, v}); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// add refuses a key that is there already: whoever wrote it twice means one of
// the two, and nobody can know which.
func (m *Node) add(member Member) error {
	for _, other := range m.Members {
		if other.Key == member.Key {
			return &Error{member.Line, fmt.Sprintf("%s is given twice, first in line %d", member.Key, other.Line)}
		}
	}
	m.Members = append(m.Members, member)
	return nil
}
