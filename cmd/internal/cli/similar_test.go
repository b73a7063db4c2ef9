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
			c.Flags.String(&text, "io", "", "DEV", "a short one").Also = []string{"throttle"}
			c.Flags.String(&text, "publish", "", "PORT", "one").Also = []string{"expose"}
			c.Flags.String(&text, "publish-all", "", "PORT", "and one that begins so")
			c.Flags.Absent = func(name string) string { return map[string]string{"privileged": "not here"}[name] }
			c.Flags.String(&text, "old", "", "TEXT", "not told").Hidden = true
			return c
		}}
	}
	gone := sub("ps")
	gone.Also = []string{"ls"}
	group := &Command{Commands: func() []Sub { return []Sub{sub("start"), sub("state"), sub("run"), gone} }}
	var root string
	group.Flags.String(&root, "root", "v", "DIR", "an option of all")
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
		{"run -v x", `try run: unknown option -v (see try run --help)`},       // not try's own letter
		{"run --vol x", `try run: unknown option --vol (see try run --help)`}, // no word for io
		{"run --xy x", `try run: unknown option --xy (see try run --help)`},
		{"run -xy x", `try run: unknown option -xy (see try run --help)`},
		{"run --pub x", `try run: unknown option --pub, did you mean --publish? (see try run --help)`},
		{"run --publish-al x", `try run: unknown option --publish-al, did you mean --publish-all? (see try run --help)`},
		{"run --throttle x", `try run: unknown option --throttle, did you mean --io? (see try run --help)`},
		{"run --expose=x", `try run: unknown option --expose=x, did you mean --publish? (see try run --help)`},
		{"run --privileged", `try run: unknown option --privileged: not here (see try run --help)`},
		{"ls", `try: unknown command "ls", did you mean ps? (see try --help)`},
		{"help runn", `try: unknown command "runn", did you mean run? (see try --help)`},
		{"help ls", `try: unknown command "ls", did you mean ps? (see try --help)`},
	} {
		err := group.Execute("try", strings.Split(test.line, " "), io.Discard)
		var usage *UsageError
		if !errors.As(err, &usage) || err.Error() != test.want {
			t.Errorf("%s: %v\nwant %s", test.line, err, test.want)
		}
	}
}

// Help is found by its words too, and an option like --version is all that is done.
func TestHelpAndAlone(t *testing.T) {
	ran, version := "", false
	leaf := func(name string) Sub {
		return Sub{Name: name, Define: func() *Command {
			return &Command{Summary: "The summary of " + name + ".", Most: -1, Run: func([]string) error { ran += name; return nil }}
		}}
	}
	inner := Sub{Name: "inner", Define: func() *Command {
		return &Command{Summary: "A group.", Commands: func() []Sub { return []Sub{leaf("make")} }}
	}}
	group := &Command{Commands: func() []Sub { return []Sub{leaf("run"), inner} }, Alone: func() bool { return version },
		Run: func(args []string) error { ran += "itself"; return nil }}
	group.Flags.Bool(&version, "version", "v", "show it")
	for _, test := range []struct{ line, want string }{
		{"help", "inner"}, {"help run", "The summary of run."}, {"help inner", "A group."}, {"help inner make", "The summary of make."},
		{"inner help make", "The summary of make."}, {"inner help", "A group."}, {"help run something", "The summary of run."}, {"run --help", "The summary of run."},
	} {
		var out strings.Builder
		if err := group.Execute("try", strings.Fields(test.line), &out); err != ErrHelp || !strings.Contains(out.String(), test.want) || ran != "" {
			t.Errorf("%s: %v, ran %q: %s", test.line, err, ran, out.String())
		}
	}
	for _, line := range []string{"-v", "-v run", "--version inner make", "-v help run", "-v nothing"} {
		ran, version = "", false
		if err := group.Execute("try", strings.Fields(line), io.Discard); err != nil || ran != "itself" {
			t.Errorf("%s: %v, ran %q", line, err, ran)
		}
	}
}
