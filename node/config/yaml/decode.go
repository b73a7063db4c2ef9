package yaml

import (
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	anchors       = "anchors and aliases are not supported"
	manyDocuments = "a second document; one file is one configuration"
)

// decode reads the one document of a text. Its errors are without a line; read is how many lines it
// took.
func decode(text string) (document *yaml.Node, read int, err error) {
	all := 1 + strings.Count(strings.TrimSuffix(text, "\n"), "\n")
	switch {
	case !utf8.ValidString(text):
		return nil, all, errors.New("this is not UTF-8")
	case strings.ContainsAny(text, "\r\u0085\u2028\u2029"):
		// YAML 1.1 ended lines by these, YAML 1.2 by the first only, and editors see none of them.
		return nil, all, errors.New("a control character that some readers take for the end of a line")
	case strings.HasPrefix(text, "%") || strings.Contains(text, "\n%"):
		return nil, all, errors.New("YAML directives are not supported")
	}
	lines := &lineReader{text, 1}
	d := yaml.NewDecoder(lines)
	var first, second yaml.Node
	if err := d.Decode(&first); err != nil && !errors.Is(err, io.EOF) {
		return nil, lines.read, errors.New(explain(err))
	}
	if err := d.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, lines.read, errors.New(manyDocuments)
	}
	return &first, lines.read, nil
}

// lineReader gives a line at a time, so that it is known how far the library looked.
type lineReader struct {
	text string
	read int // lines that were begun
}

func (r *lineReader) Read(p []byte) (int, error) {
	if r.text == "" {
		return 0, io.EOF
	}
	line := r.text
	if end := strings.IndexByte(line, '\n'); end >= 0 {
		line = line[:end+1]
	}
	n := copy(p, line)
	if n > 0 && p[n-1] == '\n' {
		r.read++
	}
	r.text = r.text[n:]
	return n, nil
}

// firstBad is the line that a text cannot be read beyond: the one behind the longest beginning that
// can be. The library's own errors have the line where the block around the mistake begins, or
// none. It looked at no more than some lines.
func firstBad(text string, lines int) int {
	for ; lines > 1; lines-- {
		end := 0
		for range lines - 1 {
			end += strings.IndexByte(text[end:], '\n') + 1
		}
		if _, _, err := decode(text[:end]); err == nil {
			break
		}
	}
	return lines
}

var prefix = regexp.MustCompile(`^yaml: (line \d+: )?`)

// explain says what to do where the library speaks of tokens.
func explain(err error) string {
	message := prefix.ReplaceAllString(err.Error(), "")
	for _, known := range []struct{ theirs, ours string }{
		{"unknown anchor", anchors},
		{"did not find expected <document start>", manyDocuments},
		{"mapping values are not allowed", "this has a colon with a space in it: put it into quotes, or on a line of its own; or it is indented below a key that has a value already"},
		{"could not find expected ':'", "a colon with a space behind it is missing"},
		{"did not find expected ',' or '}'", "the closing brace or a comma is missing"},
		{"did not find expected ',' or ']'", "a list; no key takes one"},
		{"did not find expected node content", "a key or the closing brace is missing"},
		{"did not find expected key", "this indentation matches no line above, or the line follows the end of the value"},
		{"did not find expected '-' indicator", "a list; no key takes one"},
		{"found unexpected end of stream", "the closing quote is missing"},
		{"found character that cannot start any token", "a tab, or one of @ ` % |: no value begins with it, and lines are indented by spaces only"},
		{"found a tab character", "a tab in the indentation; YAML takes spaces only"},
		{"control characters are not allowed", "a control character"},
		{"found unknown escape character", "an escape that YAML does not know"},
	} {
		if strings.HasPrefix(message, known.theirs) {
			return known.ours + " (" + message + ")"
		}
	}
	return message
}
