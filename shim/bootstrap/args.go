package bootstrap

import (
	"fmt"
	"strings"
)

// Args is a command line of containerd's.
type Args struct {
	Namespace string
	ID        string
	Address   string // containerd's gRPC socket
	Bundle    string
	Socket    string // of the server
	// DebugSocket is where a server that debugs tells what it is doing.
	DebugSocket string
	Debug       bool
	Version     bool
	Help        bool
	Info        bool
	// PublishBinary is containerd's own program, which publishes events where there is no socket
	// for that.
	PublishBinary string
	// All is every shim, for an upgrade, and InPlace the program that is now where a shim's own
	// was.
	All, InPlace bool
	// CheckState is for a program that another shim may hand itself over to: it says whether it
	// understands the state that it is given as standard input.
	CheckState bool
	// TakeOver is the descriptor of the state that the program before this one has left, and Undone
	// why a program after it has given that back.
	TakeOver string
	Undone   string
	// Command is "start", "delete", "upgrade", or "" for the server.
	Command string
}

// Server is the command line of the server, with its program's name first.
func (a *Args) Server(program string) []string {
	argv := []string{program, "-namespace", a.Namespace, "-id", a.ID, "-address", a.Address, "-socket", a.Socket}
	if a.PublishBinary != "" {
		argv = append(argv, "-publish-binary", a.PublishBinary)
	}
	if a.Debug {
		argv = append(argv, "-debug")
	}
	if a.DebugSocket != "" {
		argv = append(argv, "-debug-socket", a.DebugSocket)
	}
	return argv
}

// ParseArgs reads flags of the form that Go's flag package takes: one dash or
// two, the value after "=" or as the next argument, all before the command.
func ParseArgs(args []string) (*Args, error) {
	a := new(Args)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if !strings.HasPrefix(arg, "-") {
			if a.Command != "" {
				return nil, fmt.Errorf("two commands: %q and %q", a.Command, arg)
			}
			a.Command = arg
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		if set := a.boolean(name); set != nil {
			if hasValue && value != "true" && value != "false" {
				return nil, fmt.Errorf("flag -%s is true or false, not %q", name, value)
			}
			*set = value != "false"
			continue
		}
		set := a.text(name)
		if set == nil {
			return nil, fmt.Errorf("flag -%s is not known", name)
		}
		if !hasValue {
			if i++; i == len(args) {
				return nil, fmt.Errorf("flag -%s needs a value", name)
			}
			value = args[i]
		}
		*set = value
	}
	switch a.Command {
	case "", "start", "delete", "upgrade":
		return a, nil
	}
	return nil, fmt.Errorf("command %q is not known: use start, delete or upgrade, or none to serve", a.Command)
}

func (a *Args) boolean(name string) *bool {
	switch name {
	case "debug":
		return &a.Debug
	case "v", "version":
		return &a.Version
	case "h", "help":
		return &a.Help
	case "info":
		return &a.Info
	case "all":
		return &a.All
	case "in-place":
		return &a.InPlace
	case "check-state":
		return &a.CheckState
	}
	return nil
}

// text is where a flag's value goes.
func (a *Args) text(name string) *string {
	switch name {
	case "namespace":
		return &a.Namespace
	case "id":
		return &a.ID
	case "address":
		return &a.Address
	case "bundle":
		return &a.Bundle
	case "socket":
		return &a.Socket
	case "debug-socket":
		return &a.DebugSocket
	case "publish-binary":
		return &a.PublishBinary
	case "take-over":
		return &a.TakeOver
	case "undone":
		return &a.Undone
	}
	return nil
}
