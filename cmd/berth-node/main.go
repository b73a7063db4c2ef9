package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/internal/escape"
)

func main() { os.Exit(run(os.Args)) }

func run(args []string) int {
	root := command()
	err := root.Execute(filepath.Base(args[0]), args[1:], os.Stdout)
	switch {
	case err == nil || errors.Is(err, cli.ErrHelp):
		return 0
	case errors.Is(err, errDiffer):
		return 1
	}
	var many interface{ Unwrap() []error }
	list := []error{err}
	if errors.As(err, &many) {
		list = many.Unwrap()
	}
	for _, err := range list {
		var usage *cli.UsageError
		if errors.As(err, &usage) {
			fmt.Fprintln(os.Stderr, usage) // begins with the command's own name
			continue
		}
		// One line each, whatever names are in it.
		fmt.Fprintln(os.Stderr, "berth-node: "+escape.Message(err.Error()))
	}
	return 1
}
