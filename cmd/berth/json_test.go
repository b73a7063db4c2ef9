package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/clidoc"
)

// withoutJSON are the commands that have no --json, each with the reason. All others tell people
// something in a form that a program wants as well.
var withoutJSON = map[string]string{
	"box":             "its output is the command's; what it tells of it, --report json does",
	"run":             "its output is the program's",
	"exec":            "its output is the program's",
	"restore":         "its output is the program's",
	"create":          "it tells nothing",
	"start":           "it tells nothing",
	"kill":            "it tells nothing",
	"delete":          "it tells nothing",
	"pause":           "it tells nothing",
	"resume":          "it tells nothing",
	"update":          "it tells nothing",
	"checkpoint":      "it tells nothing",
	"state":           "it is JSON always",
	"features":        "it is JSON always",
	"spec":            "it is JSON always",
	"completion":      "a script",
	"man":             "pages",
	"seccomp learn":   "it is JSON always",
	"cgroup delete":   "it tells nothing",
	"cgroup run":      "its output is the command's",
	"cgroup exec":     "its output is the command's",
	"cgroup classify": "it tells nothing",
	"cgroup set":      "it tells nothing",
}

func TestEveryTableIsJSONToo(t *testing.T) {
	seen := map[string]bool{}
	var walk func(n *clidoc.Node)
	walk = func(n *clidoc.Node) {
		for _, sub := range n.Subs {
			walk(sub)
		}
		if n.Subs != nil {
			return
		}
		name := strings.TrimPrefix(n.Path, "berth ")
		has := slices.ContainsFunc(n.Flags.List, func(f *cli.Flag) bool { return f.Name == "json" && f.Value == "" })
		_, excused := withoutJSON[name]
		seen[name] = true
		if has == excused {
			t.Errorf("%s: has --json: %v, excused: %v", n.Path, has, excused)
		}
	}
	walk(clidoc.Tree(newProgram().command()))
	for name := range withoutJSON {
		if !seen[name] {
			t.Errorf("there is no command %q", name)
		}
	}
}
