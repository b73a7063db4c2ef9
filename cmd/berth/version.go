package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/berth-runtime/berth/internal/cli"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// version is the release; the linker may set it and the commit (-X).
var (
	version = "0.1.0-dev"
	commit  = ""
)

func (p *program) versionCommand() *cli.Command {
	return &cli.Command{
		Name: "version", Summary: "Tell the version, the commit, and the specification that is implemented.",
		Run: func([]string) error { return p.printVersion() },
	}
}

// printVersion keeps to the form that Docker parses: a first line with a name and
// the version, then keys. containerd wants the first word to be runc where the
// program is called so.
func (p *program) printVersion() error {
	name := "berth"
	if filepath.Base(os.Args[0]) == "runc" {
		name = "runc"
	}
	_, err := fmt.Printf("%s version %s\ncommit: %s\nspec: %s\ngo: %s\n", name, version, commitID(), specs.Version, runtime.Version())
	return err
}

func commitID() string {
	if commit != "" {
		return commit
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}
