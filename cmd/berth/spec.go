package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/spec"
)

func (p *program) specCommand() *cli.Command {
	bundle := "."
	var rootless bool
	c := &cli.Command{
		Summary: "Create a starter config.json.",
		Run: func([]string) error {
			path := filepath.Join(bundle, spec.ConfigName)
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s exists and is not overwritten; remove it first", path)
			}
			if errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("--bundle %s: no such directory", bundle)
			}
			if err != nil {
				return fmt.Errorf("--bundle: %w", err)
			}
			_, err = f.Write(append(spec.Format(spec.Example(rootless), "\t"), '\n'))
			return errors.Join(err, f.Close())
		},
	}
	c.Flags.String(&bundle, "bundle", "b", "DIR", "directory to write it to")
	c.Flags.Bool(&rootless, "rootless", "", "make it usable by an ordinary user")
	return c
}
