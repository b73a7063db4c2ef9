package clidoc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cmd/internal/cli"
)

// Shells are those that Completion knows.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Completion is the script by which a shell completes the commands. asked are the names in help
// texts (ID, SIGNAL) whose values only the program knows. The script asks it for those that begin
// with PREFIX, by "completion --offer ID PREFIX", and with the --root of the command line.
func Completion(root *Node, shell string, asked ...string) ([]byte, error) {
	s := &script{root: root, asked: asked}
	switch shell {
	case "bash":
		return []byte(s.bash()), nil
	case "zsh":
		return []byte(s.zsh()), nil
	case "fish":
		return []byte(s.fish()), nil
	}
	return nil, fmt.Errorf("there are completions for %s, not for %q", strings.Join(Shells(), ", "), shell)
}

type script struct {
	root  *Node
	asked []string
}

// An offer is what may be written at one place of a command line.
type offer struct {
	words   []string // these
	asked   []string // what the program says for these names
	file    bool
	command bool
}

// offerFor reads a name as help has it: ID, none|host, default|none|FILE, PATH[:PLACE].
func (s *script) offerFor(name string) (o offer) {
	if slices.Contains(s.asked, name) {
		o.asked = []string{name}
	}
	head, _, _ := strings.Cut(name, "[")
	alternatives := strings.Split(head, "|")
	for _, word := range alternatives {
		switch {
		case len(alternatives) > 1 && word != strings.ToUpper(word): // FILE and such stand for something
			o.words = append(o.words, word)
		case word == "COMMAND":
			o.command = true
		case isPath(word):
			o.file = true
		}
	}
	return o
}

// isPath says whether a name stands for a file or a directory.
func isPath(name string) bool {
	switch name {
	case "A", "B", "ARG", "BUNDLE", "PROFILE":
		return true
	}
	for _, word := range []string{"FILE", "DIR", "PATH", "SOCKET"} {
		if strings.HasPrefix(name, word) {
			return true
		}
	}
	return false
}

// arguments are what a command takes: an offer for each place, the last one repeated if it says so.
// A name that may be repeated is mixed with those that follow it: limits, then cgroups.
func (s *script) arguments(n *Node) (list []offer, repeated bool) {
	mixed := -1
	for name := range strings.FieldsSeq(n.Args) {
		name = strings.Trim(name, "[]")
		single := strings.TrimSuffix(strings.TrimSuffix(name, "…"), "...")
		o := s.offerFor(single)
		if mixed >= 0 {
			with := &list[mixed]
			with.words, with.asked = append(with.words, o.words...), append(with.asked, o.asked...)
			with.file, with.command = with.file || o.file, with.command || o.command
			continue
		}
		list = append(list, o)
		if single != name {
			mixed, repeated = len(list)-1, true
		}
	}
	return list, repeated
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// valued calls for each spelling of each option that has a value.
func (s *script) valued(call func(n *Node, spelling string, f *cli.Flag)) {
	s.root.walk(func(n *Node) {
		for _, f := range n.Flags.List {
			if f.Value == "" {
				continue
			}
			for _, spelling := range spellings(f) {
				call(n, spelling, f)
			}
		}
	})
}
