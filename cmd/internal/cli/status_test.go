package cli

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// A command line that is not understood has the exit status of the command that was meant, also
// where it is an option before the command that is wrong.
func TestUsageStatus(t *testing.T) {
	sub := func(name string, status int) Sub {
		return Sub{Name: name, Define: func() *Command {
			c := &Command{Most: 1, UsageStatus: status, Run: func([]string) error { return nil }}
			var n int
			c.Flags.Int(&n, "number", "n", "N", "a number")
			return c
		}}
	}
	tools := Sub{Name: "tools", Define: func() *Command {
		return &Command{Commands: func() []Sub { return []Sub{sub("list", 0), sub("run", 126)} }}
	}}
	for _, test := range []struct {
		line   string
		status int
	}{
		{"box --what", 125},
		{"box -n x", 125},
		{"box one two", 125},
		{"--what box", 125},
		{"--what=x box", 125},
		{"--what x box", 125}, // it is not known whether it takes a value
		{"--root", 1},
		{"--depth x box", 125},
		{"--root dir --what box", 125},
		{"--what -- box", 125},
		{"--what list", 1},
		{"--what tools run box", 126},
		{"--what tools list", 1},
		{"--what tools", 1},
		{"tools --what run", 126},
		{"tools run --what", 126},
		{"tools --what box", 1}, // which is none of them
		{"--what", 1},
		{"--what boxes", 1},
		{"boxes", 1},
	} {
		group := &Command{Commands: func() []Sub { return []Sub{sub("box", 125), sub("list", 0), tools} }}
		var root string
		var depth int
		group.Flags.String(&root, "root", "", "DIR", "an option of all")
		group.Flags.Int(&depth, "depth", "", "N", "and one that can be wrong")
		var wrong *UsageError
		if err := group.Execute("try", strings.Fields(test.line), io.Discard); !errors.As(err, &wrong) || wrong.Status != test.status {
			t.Errorf("%s: %v, want status %d", test.line, err, test.status)
		}
	}
}
