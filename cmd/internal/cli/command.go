package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
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
}

// A Sub is a command of a group. It is made when it is called: the definitions of
// all commands of a program take more time than most of them do.
type Sub struct {
	Name string
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
	if errors.As(err, &unknown) && isHelp(unknown.Spelling) || c.Commands != nil && len(rest) > 0 && rest[0] == "help" {
		c.WriteHelp(help, path)
		return ErrHelp
	}
	if err != nil {
		return &UsageError{Command: path, Status: c.usageStatus(), Err: err}
	}
	if c.Commands != nil && len(rest) > 0 {
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

func (c *Command) dispatch(path string, rest []string, help io.Writer) error {
	var names []string
	for _, sub := range c.Commands() {
		if sub.Name == rest[0] {
			err := sub.Command().Execute(path+" "+sub.Name, rest[1:], help)
			var unknown *UnknownFlag
			if errors.As(err, &unknown) && c.Flags.find(unknown.name) != nil {
				unknown.hint = ", it is one of " + path + " and goes before " + sub.Name
			}
			return err
		}
		names = append(names, sub.Name)
	}
	return &UsageError{Command: path, Status: c.usageStatus(), Err: &UnknownCommand{Name: rest[0], hint: didYouMean(rest[0], names)}}
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
