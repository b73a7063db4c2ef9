package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/berth-runtime/berth/cmd/berth/internal/doctor"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/internal/kernel"
)

func (p *program) doctorCommand() *cli.Command {
	var asJSON, asMarkdown, node bool
	c := &cli.Command{
		Summary:  "Check whether this machine can run containers, and show how to fix each gap.",
		Examples: []string{"berth doctor", "berth doctor --node"},
		Help: "As root it checks what root needs, otherwise what an ordinary user needs; gaps that only matter\n" +
			"to the other are hints. The exit status is 0 if nothing is missing.",
		Run: func([]string) error {
			if asMarkdown {
				_, err := os.Stdout.Write(kernel.Page())
				return err
			}
			if node {
				return nodeDoctor(asJSON)
			}
			m := doctor.Here()
			findings := m.Examine()
			text := doctor.JSON(findings, m.Kind())
			if !asJSON {
				// NO_COLOR: see no-color.org.
				text = doctor.Text(findings, m.Kind(), terminal.IsTerminal(1) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
			}
			if _, err := os.Stdout.Write(text); err != nil {
				return err
			}
			if !doctor.Healthy(findings, m.Kind()) {
				return &exitStatus{code: 1}
			}
			return nil
		},
	}
	c.Flags.Bool(&node, "node", "", "check instead whether berth, containerd, Docker, the kubelet and berth-node agree (runs berth-node doctor)")
	c.Flags.Bool(&asJSON, "json", "", "as JSON")
	c.Flags.Bool(&asMarkdown, "markdown", "", "print docs/kernel-features.md instead: what newer kernels add")
	return c
}

// nodeDoctor lets berth-node compare the programs of the node: it has the plan, and the reader of
// YAML, for which each start of a container would pay if it was linked here.
func nodeDoctor(asJSON bool) error {
	program, err := os.Executable()
	if err == nil {
		program = filepath.Join(filepath.Dir(program), "berth-node")
		_, err = os.Stat(program)
	}
	if err != nil {
		if program, err = exec.LookPath("berth-node"); err != nil {
			return fmt.Errorf("--node: %w: install it beside berth, or in PATH", err)
		}
	}
	cmd := exec.Command(program, "doctor")
	if asJSON {
		cmd.Args = append(cmd.Args, "--json")
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &exitStatus{code: exit.ExitCode()}
	}
	if err != nil {
		return fmt.Errorf("--node: %w", err)
	}
	return nil
}
