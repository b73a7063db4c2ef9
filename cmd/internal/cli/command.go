package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/internal/typo"
)

// A Command is one command of a program, or a group of commands.
type Command struct {
	Name    string
	Args    string // as help shows them
	Summary string // one line
	Help    string // paragraphs
	// Examples are command lines that work.
	Examples []string

	Flags Flags
	// FirstEnds: the first argument ends the options, because what follows belongs
	// to another program.
	FirstEnds bool
	// Least and Most are how many arguments are wanted; Most is -1 for any number.
	Least, Most int
	// UsageStatus is the exit status for a command line that is not understood; 0 for the usual 1.
	UsageStatus int
	Run         func(args []string) error
	// Commands are the commands of a group.
	Commands func() []Sub
	// Alone reports whether an option was given, such as --version, that has Run be called in
	// place of the command that is named.
	Alone func() bool
}

// A Sub is a command of a group. It is made when it is called: the definitions of
// all commands of a program take more time than most of them do.
type Sub struct {
	Name string
	// Also are the words by which other programs have it: a hint names it.
	Also []string
	// Define makes the command, whose name is already known.
	Define func() *Command
}

// Command makes the command.
func (s Sub) Command() *Command {
	c := s.Define()
	c.Name = s.Name
	return c
}

// ErrHelp is returned where help was asked for, and given.
var ErrHelp = errors.New("help was asked for")

// A UsageError is a command line that a command does not understand.
type UsageError struct {
	Command string
	Status  int // the exit status
	Err     error
}

func (e *UsageError) Error() string {
	return fmt.Sprintf("%s: %v (see %s --help)", e.Command, e.Err, e.Command)
}

func (e *UsageError) Unwrap() error { return e.Err }

// Execute reads the arguments behind the command's name and runs it. path is how
// the command was called so far.
func (c *Command) Execute(path string, args []string, help io.Writer) error {
	rest, err := c.Flags.parse(args, c.FirstEnds || c.Commands != nil)
	var unknown *UnknownFlag
	if errors.As(err, &unknown) && isHelp(unknown.Spelling) {
		c.WriteHelp(help, path)
		return ErrHelp
	}
	if err != nil {
		return &UsageError{Command: path, Status: c.statusOf(rest), Err: err}
	}
	if c.Alone != nil && c.Alone() {
		return c.Run(nil)
	}
	if c.Commands != nil && len(rest) > 0 {
		if rest[0] == "help" {
			return c.helpOn(path, rest[1:], help)
		}
		return c.dispatch(path, rest, help)
	}
	switch {
	case c.Run == nil:
		c.WriteHelp(help, path)
		return &UsageError{Command: path, Status: c.usageStatus(), Err: errors.New("a command is missing")}
	case len(rest) < c.Least:
		return &UsageError{Command: path, Status: c.usageStatus(), Err: fmt.Errorf("an argument is missing: %s", c.Args)}
	case c.Most >= 0 && len(rest) > c.Most:
		return &UsageError{Command: path, Status: c.usageStatus(), Err: fmt.Errorf("unexpected argument %q", rest[c.Most])}
	}
	return c.Run(rest)
}

func (c *Command) usageStatus() int { return cmp.Or(c.UsageStatus, 1) }

// statusOf is the exit status for an option of a group that is not understood: that of the command
// named by the words after it, the first that is one.
func (c *Command) statusOf(words []string) int {
	if c.Commands == nil {
		return c.usageStatus()
	}
	list := c.Commands()
	for i, word := range words {
		if at := slices.IndexFunc(list, func(s Sub) bool { return s.Name == word }); at >= 0 {
			return list[at].Command().statusOf(words[i+1:])
		}
	}
	return c.usageStatus()
}

func (c *Command) dispatch(path string, rest []string, help io.Writer) error {
	sub, err := c.named(path, rest[0])
	if err != nil {
		return err
	}
	err = sub.Command().Execute(path+" "+sub.Name, rest[1:], help)
	var unknown *UnknownFlag
	// A letter is rather meant as what other programs have by it.
	if errors.As(err, &unknown) && len(unknown.name) > 1 && c.Flags.find(unknown.name) != nil {
		unknown.hint = ", it is one of " + path + " and goes before " + sub.Name
	}
	return err
}

// helpOn writes the help of a command by its words.
func (c *Command) helpOn(path string, words []string, help io.Writer) error {
	if len(words) == 0 || c.Commands == nil {
		c.WriteHelp(help, path)
		return ErrHelp
	}
	sub, err := c.named(path, words[0])
	if err != nil {
		return err
	}
	return sub.Command().helpOn(path+" "+sub.Name, words[1:], help)
}

// named finds a command of a group.
func (c *Command) named(path, name string) (*Sub, error) {
	var names []string
	list := c.Commands()
	for i := range list {
		if list[i].Name == name {
			return &list[i], nil
		}
		names = append(names, list[i].Name)
	}
	hint := didYouMean(typo.Meant(name, names))
	for i := range list {
		if slices.Contains(list[i].Also, name) {
			hint = didYouMean(list[i].Name)
		}
	}
	return nil, &UsageError{Command: path, Status: c.usageStatus(), Err: &UnknownCommand{Name: name, hint: hint}}
}

// UnknownCommand is the error for a command that there is not.
type UnknownCommand struct{ Name, hint string }

func (e *UnknownCommand) Error() string { return fmt.Sprintf("unknown command %q%s", e.Name, e.hint) }

func isHelp(spelling string) bool {
	switch strings.TrimLeft(spelling, "-") {
	case "help", "h":
		return true
	}
	return false
}
