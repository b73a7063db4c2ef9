package cli

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// Letters may be written together as for getopt(3), as scripts for cgget(1) have them.
func TestBundledLetters(t *testing.T) {
	for _, test := range []struct{ line, want string }{
		{"-nvr memory.max demo", "true true memory.max [demo]"},
		{"-nv demo", "true true  [demo]"},
		{"demo -vn", "true true  [demo]"},
		{"-rnv", "unknown option -rnv"},      // -r takes a value, so it is the last
		{"-nxv demo", "unknown option -nxv"}, // no -x
		{"--nv demo", "unknown option --nv"},
		{"-nvr", "option -r needs a value: NAME"},
		{"-nv=true demo", "unknown option -nv=true"},
		{"-nrvall demo", "unknown option -nrvall, did you mean --nvrall?"}, // all are letters of switches but for the r
		{"-nvnall demo", "unknown option -nvnall, did you mean --nvrall?"},
	} {
		var n, v bool
		var r, got string
		c := &Command{Most: -1, Run: func(rest []string) error { got = fmt.Sprint(n, v, " ", r, " ", rest); return nil }}
		c.Flags.Bool(&n, "no-heading", "n", "a switch")
		c.Flags.Bool(&v, "values-only", "v", "a switch")
		c.Flags.Bool(&v, "nvrall", "al", "a switch")
		c.Flags.String(&r, "variable", "r", "NAME", "a text")
		if err := c.Execute("try", strings.Split(test.line, " "), io.Discard); err != nil {
			got = strings.TrimSuffix(strings.TrimPrefix(err.Error(), "try: "), " (see try --help)")
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.line, got, test.want)
		}
	}
}
