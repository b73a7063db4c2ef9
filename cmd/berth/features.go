package main

import (
	"os"

	"github.com/berth-runtime/berth/container"
	"github.com/berth-runtime/berth/internal/cli"
)

func (p *program) featuresCommand() *cli.Command {
	return &cli.Command{
		Summary: "Tell as JSON what this build can do, as the runtime specification has it.",
		Run: func([]string) error {
			f := container.Features(map[string]string{
				"io.github.berth-runtime.version": version,
				"io.github.berth-runtime.commit":  commitID(),
			})
			_, err := os.Stdout.Write(append(container.FormatFeatures(f, "  "), '\n'))
			return err
		},
	}
}
