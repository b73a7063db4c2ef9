package escape_test

import (
	"errors"
	"testing"

	"github.com/berth-runtime/berth/internal/escape"
)

func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		`plain "quoted" \\ übergroß 漢`: `plain "quoted" \\ übergroß 漢`,
		"a\x1b[31mb":                   `a\x1b[31mb`,
		"a\u009b31mb\x7f":              `a\u009b31mb\x7f`,
		"two\nlines\tand\rmore":        `two\nlines\tand\rmore`,
		"\u202egnp.exe\u2066\u200f":    `\u202egnp.exe\u2066\u200f`,
		"\x9b\xff":                     `\x9b\xff`,
		"\ufffd":                       "\ufffd",
	} {
		if got := escape.Line(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestMessage(t *testing.T) {
	err := errors.Join(errors.New("one\x1b[2J"), errors.New("two"))
	if got := escape.Message(err.Error()); got != `one\x1b[2J; two` {
		t.Errorf("%q", got)
	}
}
