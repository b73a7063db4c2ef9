package main

import (
	"os"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/view"
)

func (p *program) featuresCommand() *cli.Command {
	return &cli.Command{
		Summary: "Print this build's features as JSON, in the runtime specification's format.",
		Run: func([]string) error {
			f := view.Features(map[string]string{
				"io.github.berth-runtime.version": version,
				"io.github.berth-runtime.commit":  commitID(),
			})
			_, err := os.Stdout.Write(append(view.FormatFeatures(f, "  "), '\n'))
			return err
		},
	}
}
