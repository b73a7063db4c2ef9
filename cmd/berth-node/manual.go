package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/clidoc"
)

func manCommand() *cli.Command {
	var dir string
	c := &cli.Command{
		Summary:  "Write the man pages of all commands to a directory.",
		Examples: []string{"berth-node man --dir /usr/local/share/man"},
		Run: func([]string) error {
			for _, page := range clidoc.Man(clidoc.Tree(command()), "Berth", "berth(1)") {
				file := filepath.Join(dir, "man1", page.File)
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
	c.Flags.String(&dir, "dir", "d", "DIR", "directory for man1 (default: the current one)")
	return c
}

func completionCommand() *cli.Command {
	return &cli.Command{
		Args: "bash|zsh|fish", Least: 1, Most: 1,
		Summary:  "Print the shell completion script.",
		Examples: []string{"berth-node completion bash > /etc/bash_completion.d/berth-node"},
		Run: func(args []string) error {
			script, err := clidoc.Completion(clidoc.Tree(command()), args[0])
			if err != nil {
				return err
			}
			_, err = os.Stdout.Write(script)
			return err
		},
	}
}
