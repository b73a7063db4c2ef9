package clidoc

import (
	"github.com/berth-runtime/berth/cmd/internal/cli"
)

// A Node is a command with how it is called.
type Node struct {
	*cli.Command
	Path string // "berth cgroup create"
	Subs []*Node
}

// Tree makes all definitions below a command.
func Tree(c *cli.Command) *Node { return grow(c, c.Name) }

func grow(c *cli.Command, path string) *Node {
	n := &Node{Command: c, Path: path}
	if c.Commands != nil {
		for _, sub := range c.Commands() {
			n.Subs = append(n.Subs, grow(sub.Command(), path+" "+sub.Name))
		}
	}
	return n
}

// walk visits a command and all below it, in the order of their definition.
func (n *Node) walk(visit func(*Node)) {
	visit(n)
	for _, sub := range n.Subs {
		sub.walk(visit)
	}
}

// flags are the options that are told.
func (n *Node) flags() []*cli.Flag {
	var list []*cli.Flag
	for _, f := range n.Flags.List {
		if !f.Hidden {
			list = append(list, f)
		}
	}
	return list
}

// usage is the line that shows how it is called.
func (n *Node) usage() string {
	text := n.Path
	if len(n.flags()) > 0 {
		text += " [options]"
	}
	switch {
	case n.Subs != nil:
		text += " COMMAND"
	case n.Args != "":
		text += " " + n.Args
	}
	return text
}

func spellings(f *cli.Flag) []string {
	list := []string{"--" + f.Name}
	for _, letter := range f.Letters {
		list = append(list, "-"+string(letter))
	}
	return list
}
