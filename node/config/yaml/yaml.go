package yaml

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
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

// Parse reads a document. An empty one is an empty mapping.
func Parse(text string) (*Node, error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	document, read, err := decode(text)
	if err != nil {
		return nil, &Error{firstBad(text, read), err.Error()}
	}
	if document.Kind == 0 {
		return &Node{Line: 1, Mapping: true}, nil
	}
	root := document.Content[0]
	if root.Kind == yaml.ScalarNode && root.Value == "" && root.Style == 0 && root.Anchor == "" {
		root = &yaml.Node{Kind: yaml.MappingNode, Line: root.Line, Column: root.Column} // "---" alone
	}
	n, err := source(strings.Split(text, "\n")).node(root, 0)
	switch {
	case err != nil:
		return nil, err
	case !n.Mapping:
		return nil, noValue(n)
	case root.Style&yaml.FlowStyle == 0 && root.Column > 1:
		return nil, &Error{root.Line, "the first key is indented"}
	}
	return n, nil
}

// source is the text by lines. The nodes do not have all that is refused: a look at the place they
// come from does.
type source []string

// at gives the rest of the line that a node begins on. Columns count characters.
func (s source) at(n *yaml.Node) string {
	if n.Line < 1 || n.Line > len(s) {
		return ""
	}
	rest := s[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
	return rest
}

func (s source) node(n *yaml.Node, depth int) (*Node, error) {
	here := s.at(n)
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return nil, &Error{n.Line, anchors}
	case n.Style&yaml.TaggedStyle != 0 || strings.HasPrefix(here, "!"): // the library forgets that there was a lone "!"
		return nil, &Error{n.Line, "tags are not taken"}
	case n.Kind == yaml.SequenceNode:
		return nil, &Error{n.Line, "a list; no key takes one: write key: value lines"}
	case n.Kind == yaml.ScalarNode:
		_, err := scalar(n, here)
		return &Node{Line: n.Line, Text: n.Value}, err
	case depth == maxDepth:
		return nil, &Error{n.Line, "nested too deeply"}
	}
	m := &Node{Line: n.Line, Mapping: true}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, err := s.key(n.Content[i], depth+1)
		if err != nil {
			return nil, err
		}
		value, err := s.node(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if err := m.add(Member{key.Text, key.Line, value}); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// key reads the scalar before a colon.
func (s source) key(n *yaml.Node, depth int) (*Node, error) {
	key, err := s.node(n, depth)
	if err != nil {
		return nil, err
	}
	switch {
	case key.Mapping:
		return nil, &Error{key.Line, "a mapping cannot be a key"}
	case key.Text == "":
		return nil, &Error{key.Line, "a key is missing before the colon"}
	case key.Text == "<<" && n.Style == 0:
		return nil, &Error{key.Line, "merge keys are not supported"}
	}
	// In braces one may stand alone, and after "?" the colon is in a line below.
	if rest, _ := scalar(n, s.at(n)); !strings.HasPrefix(strings.TrimLeft(rest, " \t"), ":") {
		return nil, noValue(key)
	}
	return key, nil
}

func noValue(n *Node) error {
	return &Error{n.Line, fmt.Sprintf("%.40q is not a key with its value: a colon with a space behind it is missing", n.Text)}
}

// scalar finds one in the line it begins on, and gives the rest of that. It refuses what readers
// take for different things: over several lines, spaces and breaks are folded by rules that few
// know by heart, and a line indented by mistake would become a part of the value above it.
func scalar(n *yaml.Node, here string) (rest string, err error) {
	whole := false
	switch n.Style {
	case yaml.LiteralStyle, yaml.FoldedStyle:
		return "", &Error{n.Line, "block scalars are not supported"}
	case yaml.DoubleQuotedStyle:
		rest, whole = afterQuote(here)
	case yaml.SingleQuotedStyle:
		rest, whole = strings.CutPrefix(here, "'"+strings.ReplaceAll(n.Value, "'", "''")+"'")
	default:
		rest, whole = strings.CutPrefix(here, n.Value)
	}
	switch i := strings.IndexFunc(n.Value, func(r rune) bool { return unicode.IsControl(r) && r != '\t' && r != '\n' }); {
	case !whole:
		return "", &Error{n.Line, "a value of more than one line: a closing quote is missing, or the line below is indented"}
	case i >= 0:
		r, _ := utf8.DecodeRuneInString(n.Value[i:])
		return "", &Error{n.Line, fmt.Sprintf("the control character %q", r)}
	case n.Style != 0 && strings.HasPrefix(rest, "#"): // the library takes a comment
		return "", &Error{n.Line, fmt.Sprintf("%.40q follows the end of the value", rest)}
	}
	return rest, nil
}

// afterQuote gives what stands behind text in double quotes, if that ends on its line.
func afterQuote(text string) (string, bool) {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[i+1:], true
		}
	}
	return "", false
}

// add refuses a key that is there already: one of the two is meant, and nothing says which.
func (m *Node) add(member Member) error {
	for _, other := range m.Members {
		if other.Key == member.Key {
			return &Error{member.Line, fmt.Sprintf("%s is given twice, first in line %d", member.Key, other.Line)}
		}
	}
	m.Members = append(m.Members, member)
	return nil
}
