package cli

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestDidYouMean(t *testing.T) {
	sub := func(name string) Sub {
		return Sub{Name: name, Define: func() *Command {
			c := &Command{Most: -1, Run: func([]string) error { return nil }}
			var text string
			c.Flags.String(&text, "memory", "m", "SIZE", "a text")
			c.Flags.String(&text, "old", "", "TEXT", "not told").Hidden = true
			return c
		}}
	}
	group := &Command{Commands: func() []Sub { return []Sub{sub("start"), sub("state"), sub("run"), sub("ps")} }}
	var root string
	group.Flags.String(&root, "root", "", "DIR", "an option of all")
	for _, test := range []struct{ line, want string }{
		{"runn", `try: unknown command "runn", did you mean run? (see try --help)`},
		{"strat", `try: unknown command "strat", did you mean start? (see try --help)`},
		{"stat", `try: unknown command "stat", did you mean start? (see try --help)`}, // the first of two as near
		{"x", `try: unknown command "x" (see try --help)`},
		{"frobnicate", `try: unknown command "frobnicate" (see try --help)`},
		{"run --memroy 1M", `try run: unknown option --memroy, did you mean --memory? (see try run --help)`},
		{"run -memori=1M", `try run: unknown option -memori=1M, did you mean --memory? (see try run --help)`},
		{"run --odl x", `try run: unknown option --odl (see try run --help)`},
		{"run --root x", `try run: unknown option --root, it is one of try and goes before run (see try run --help)`},
		{"run -x", `try run: unknown option -x (see try run --help)`},
	} {
		err := group.Execute("try", strings.Split(test.line, " "), io.Discard)
		var usage *UsageError
		if !errors.As(err, &usage) || err.Error() != test.want {
			t.Errorf("%s: %v\nwant %s", test.line, err, test.want)
		}
	}
}
