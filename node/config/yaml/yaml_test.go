package yaml

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// show prints a node as {key@line: value}.
func show(n *Node) string {
	if !n.Mapping {
		return fmt.Sprintf("%q", n.Text)
	}
	var parts []string
	for _, m := range n.Members {
		parts = append(parts, fmt.Sprintf("%s@%d: %s", m.Key, m.Line, show(m.Value)))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "{}"},
		{"# nothing\n\n---\n", "{}"},
		{"a: 1\nb: two words # and a comment\n", `{a@1: "1", b@2: "two words"}`},
		{"a:\n  b: 1\n  c:\n    d: 2\ne: 3", `{a@1: {b@2: "1", c@3: {d@4: "2"}}, e@5: "3"}`},
		{"---\na: {b: 1, 'c': \"2\", d: {e: x}}\n", `{a@2: {b@2: "1", c@2: "2", d@2: {e@2: "x"}}}`},
		{"a: {}\nb:\nc: ''", `{a@1: {}, b@2: "", c@3: ""}`},
		{`a: 'it''s # no comment'`, `{a@1: "it's # no comment"}`},
		{`a: "x\ty\\\"" # c`, `{a@1: "x\ty\\\""}`},
		{"/usr/bin/x: -999\nkubelet.service: -5", `{/usr/bin/x@1: "-999", kubelet.service@2: "-5"}`},
		{"listen: 127.0.0.1:80", `{listen@1: "127.0.0.1:80"}`},
		{"a: x#y", `{a@1: "x#y"}`},
		{"\"a b\" : 1\r\n", `{a b@1: "1"}`},
		{`{"a": "1", "b": {"c": 2}}`, `{a@1: "1", b@1: {c@1: "2"}}`},
		{"a: {b: 1,}", `{a@1: {b@1: "1"}}`},
		{"a: # later\n  b: 1", `{a@1: {b@2: "1"}}`},
		{"\ufeffa: 1", `{a@1: "1"}`},
		{"ä ö: 'ü' # x\n\"é\": è", `{ä ö@1: "ü", é@2: "è"}`},
		{"a: yes\nb: 0x10\nc: ~\nd: 1_000\n", `{a@1: "yes", b@2: "0x10", c@3: "~", d@4: "1_000"}`},
		{"{\n  \"a\": 1,\n  \"b\": {\"c\": 2}\n}\n", `{a@2: "1", b@3: {c@3: "2"}}`},
		{"'<<': 1", `{<<@1: "1"}`},
		{"a: 1\n...\n", `{a@1: "1"}`},
	} {
		n, err := Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
		} else if got := show(n); got != c.want {
			t.Errorf("%q: %s, want %s", c.text, got, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		text string
		line int
		want string
	}{
		{"a: 1\n\tb: 2", 2, "tab"},
		{"a: 1\na: 2", 2, "given twice, first in line 1"},
		{"x:\n  a: 1\n  b: 2\n  a: 2", 4, "given twice, first in line 2"},
		{"a: {b: 1, b: 2}", 1, "given twice"},
		{"a: 1\n  b: 2", 2, "has a value already"},
		{"a:\n    b: 1\n  c: 2", 3, "indentation matches no line"},
		{"  a: 1", 1, "indented"},
		{"a: 1\n---\nb: 2", 2, "second document"},
		{"a: &x 1", 1, "anchors"},
		{"a: *x", 1, "anchors"},
		{"a: !!int 1", 1, "tags"},
		{"a: |\n  text", 1, "block scalars"},
		{"a: [1, 2]", 1, "list"},
		{"- a", 1, "list"},
		{"a:\n  - b", 2, "list"},
		{"%YAML 1.2", 1, "directives"},
		{"just words", 1, "colon"},
		{"a:1", 1, "colon"},
		{"a: b: c", 1, "colon with a space in it"},
		{"a: 'x", 1, "closing quote"},
		{"a: \"x\\q\"", 1, "escape"},
		{"a: 'x' y", 1, "follows the end"},
		{"a: 'x'#y", 1, "follows the end"},
		{"a: {b: 1", 1, "closing brace"},
		{"a: {b}", 1, "colon"},
		{"a: {b: 1} c", 1, "follows the end"},
		{": 1", 1, "key"},
		{"a: \x01", 1, "control character"},
		{"a: 1\nb: \xff", 2, "UTF-8"},
		{"\xff\xfea\x00:\x00 \x001\x00", 1, "UTF-8"},
		{"a: 1\nb: \"\\0\"", 2, `control character '\x00'`},
		{"a: \"\\N\"", 1, `control character '\u0085'`},
		{"a: 1\rb: 2", 1, "control character"},
		{"a: 1\nb: x\u2028c: 2", 2, "control character"},
		{"x:\n  a: 1\n  'a': 2", 3, "given twice, first in line 2"},
		{"a: 1\n---\n", 2, "second document"},
		{"a: 1\n...\nb: 2", 3, "second document"},
		{"a: 1\n...\n---\n: x: y", 3, "second document"},
		{"%YAML 1.1\n---\na: 1", 1, "directives"},
		{"a: 1\n%TAG ! x\n", 2, "directives"},
		{"b: 1\na: &x\n  c: 1", 2, "anchors"},
		{"b: 1\n&x a: 2", 2, "anchors"},
		{"&x\na: 1", 1, "anchors"},
		{"a: &x 1\nb: *x", 1, "anchors"},
		{"b: 1\na:\n  c: *x", 3, "anchors"},
		{"a: ! x", 1, "tags"},
		{"a: !x", 1, "tags"},
		{"a: !", 1, "tags"},
		{"b: 1\n!!str a: 1", 2, "tags"},
		{"a: !!map {b: 1}", 1, "tags"},
		{"a: !\n  b: 1", 1, "tags"},
		{"! {}", 1, "tags"},
		{"b: 1\na: {<<: {c: 1}}", 2, "merge keys"},
		{"x: {a: 1}\n<<: x", 2, "merge keys"},
		{"b: 1\na: [", 2, "is missing"},
		{"a:\n- b", 2, "list"},
		{"[a]", 1, "list"},
		{"[]: 1", 1, "list"},
		{"{}: 1", 1, "mapping cannot be a key"},
		{"b: 1\n? a\n: 1", 2, "colon"},
		{"? a", 1, "colon"},
		{"a: x\n  y", 1, "more than one line"},
		{"a: 'x\n  y'", 1, "more than one line"},
		{"a: \"x\n  y\"", 1, "more than one line"},
		{"a: >-\n  text", 1, "block scalars"},
		{"b: 1\na: {c: {d: 1}", 2, "closing brace"},
		{"x: 1\ny:\n  a: 1\n  b: 'c' d\n  e: 1", 4, "follows the end"},
		{"a: @x", 1, "no value begins with it"},
		{strings.Repeat(" ", 600) + "@", 1, "no value begins with it"}, // longer than what the library reads at once
		{strings.Repeat("a1: 1\n", 5000) + "@\n" + strings.Repeat("a1: 1\n", 5000), 5001, "no value begins with it"}, // at once, too
		{"a: " + strings.Repeat("{a: ", 40) + strings.Repeat("}", 40), 1, "too deeply"},
	} {
		_, err := Parse(c.text)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q was taken (%v)", c.text, err)
		} else if e.Line != c.line || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want line %d and something of %q", c.text, err, c.line, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: 1\nb:\n  c: {d: 'e'}\n", "a: \"\\\\\"", "{}", "a: {b: {}}", "? x",
		"---\na: {b: 1, 'c': \"2\", d: {e: x}} # c\n", "a: 'it''s'\nb: \"x\\ty\"\n", "\"a b\" : 1\r\n", "a: # later\n  b: 1", "\ufeffa: 1", "a: [1]", "a: {b}", "a: &x 1", "a: |\n b", "a: 1\n\tb: 2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := Parse(s)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || e.Line > 1+strings.Count(s, "\n") {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		if !n.Mapping {
			t.Errorf("%q is not a mapping", s)
		}
	})
}
