package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/internal/json"
)

func (p *program) psCommand() *cli.Command {
	format, asJSON := "table", false
	c := &cli.Command{
		Args: "ID [PS OPTION...]", Least: 1, Most: -1, FirstEnds: true,
		Summary:  "Show the processes of a container, as the host sees them.",
		Help:     "The table is that of ps -ef. With options, it is the output of ps(1) for the container's processes.",
		Examples: []string{"berth ps demo -o pid,comm", "berth ps --format json demo"},
	}
	c.Flags.String(&format, "format", "f", "table|json", "form of the list")
	jsonFlag(&c.Flags, &asJSON)
	c.Run = func(args []string) error {
		options := ownFormat(args[1:], &format)
		container, err := p.load(args[0])
		if err != nil {
			return err
		}
		defer container.Close()
		pids, err := container.Pids()
		if err != nil {
			return err
		}
		switch {
		case asJSON, format == "json":
			w := json.NewWriter(nil, "")
			w.Array()
			for _, pid := range pids {
				w.Int(int64(pid))
			}
			w.End()
			_, err := os.Stdout.Write(append(w.Bytes(), '\n'))
			return err
		case format == "table":
			return psTable(pids, options)
		}
		return fmt.Errorf("--format %q: it is table or json", format)
	}
	return c
}

// ownFormat takes --format, which clients write behind the id too, out of the options
// for ps(1), and --json, which is the same as --format json.
func ownFormat(options []string, format *string) []string {
	for i, option := range options {
		name, value, hasValue := strings.Cut(strings.TrimPrefix(option, "-"), "=")
		taken := 1
		switch {
		case name == "-json" && !hasValue:
			value = "json"
		case name != "-format" && option != "-format":
			continue
		case !hasValue && i+1 == len(options):
			return options
		case !hasValue:
			value, taken = options[i+1], 2
		}
		*format = value
		return slices.Delete(slices.Clone(options), i, i+taken)
	}
	return options
}

// said adds to a program's failure the first line of what it said about it.
func said(err error) error {
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		return err
	}
	if line, _, _ := strings.Cut(strings.TrimSpace(string(failed.Stderr)), "\n"); line != "" {
		return fmt.Errorf("%w: %s", err, line)
	}
	return err
}

// psTable shows the container's processes: without options by ourselves, with options those lines
// of ps(1) that are about them.
func psTable(pids []int, options []string) error {
	if len(options) == 0 {
		return ownTable(pids)
	}
	out, err := exec.Command("ps", options...).Output()
	if err != nil {
		return fmt.Errorf("ps %s: %w", strings.Join(options, " "), said(err))
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	column := slices.Index(strings.Fields(lines[0]), "PID")
	if column < 0 {
		return fmt.Errorf("ps %s: its output has no column PID", strings.Join(options, " "))
	}
	table := terminal.Lines(os.Stdout)
	fmt.Fprintln(table, lines[0])
	for _, line := range lines[1:] {
		fields := strings.Fields(line)
		if column >= len(fields) {
			continue
		}
		if pid, err := strconv.Atoi(fields[column]); err == nil && slices.Contains(pids, pid) {
			fmt.Fprintln(table, escape.Line(line))
		}
	}
	return nil
}
