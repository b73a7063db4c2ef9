package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/clidoc"
)

func (p *program) manCommand() *cli.Command {
	var dir string
	var markdown bool
	c := &cli.Command{
		Summary:  "Write the man pages of all commands and file formats to a directory.",
		Examples: []string{"berth man --dir /usr/local/share/man"},
		Run: func([]string) error {
			tree := clidoc.Tree(p.command())
			if markdown {
				_, err := os.Stdout.Write(clidoc.Markdown(tree))
				return err
			}
			source := "berth " + version
			for _, page := range append(clidoc.Man(tree, source, "berth.toml(5)", "berth-config(5)", "berth-state(5)", "berth-report(5)"), clidoc.Formats(source)...) {
				file := filepath.Join(dir, "man"+filepath.Ext(page.File)[1:], page.File)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					return fmt.Errorf("--dir: %w", err)
				}
				if err := os.WriteFile(file, page.Text, 0o644); err != nil {
					return fmt.Errorf("--dir: %w", err)
				}
			}
			return nil
		},
	}
	c.Flags.String(&dir, "dir", "d", "DIR", "directory for man1 and man5 (default: the current one)")
	c.Flags.Bool(&markdown, "markdown", "", "print docs/commands.md, the reference of all commands, instead")
	return c
}
