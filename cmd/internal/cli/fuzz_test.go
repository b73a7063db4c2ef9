package cli

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// Any command line is either understood or refused, and every argument behind "--" arrives as it
// is.
func FuzzArguments(f *testing.F) {
	for _, line := range []string{
		"id", "--flag id", "-f id", "--text=x id", "--text x id", "-t x id", "-tx id", "--number 7 id", "--number=-7 id", "--list a --list b id", "id --flag",
		"-- --flag", "--", "-", "--help", "-h", "help", "--unknown", "-ft x", "--flag=false id", "--flag=maybe", "--number x", "---", "--=", "-=x", "id surplus more",
	} {
		f.Add(line, true)
		f.Add(line, false)
	}
	f.Fuzz(func(t *testing.T, line string, firstEnds bool) {
		args := strings.Split(line, " ")
		var got []string
		ran := false
		c := &Command{Name: "try", Least: 1, Most: -1, FirstEnds: firstEnds, Run: func(rest []string) error { got, ran = rest, true; return nil }}
		var flag bool
		var text string
		var number int
		var list []string
		c.Flags.Bool(&flag, "flag", "f", "a flag")
		c.Flags.String(&text, "text", "t", "TEXT", "a text")
		c.Flags.Int(&number, "number", "n", "N", "a number")
		c.Flags.Strings(&list, "list", "", "ITEM", "a list")
		err := c.Execute("try", slices.Clone(args), io.Discard)
		var usage *UsageError
		if err != nil && !errors.Is(err, ErrHelp) && !errors.As(err, &usage) {
			t.Errorf("%q: the error is %T: %v", args, err, err)
		}
		if ran == (err != nil) {
			t.Errorf("%q: ran %v, error %v", args, ran, err)
		}
		if !ran {
			return
		}
		if len(got) > len(args) {
			t.Errorf("%q became %q", args, got)
		}
		if i := slices.Index(args, "--"); i == 0 && !slices.Equal(got, args[1:]) {
			t.Errorf("%q: behind the dashes came %q", args, got)
		}
	})
}
