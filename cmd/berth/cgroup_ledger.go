package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/spec"
)

// formatFlags define --json and --markdown.
func formatFlags(f *cli.Flags, to *ledger.Format) {
	*to = ledger.Text
	for _, format := range []ledger.Format{ledger.JSON, ledger.Markdown} {
		words := "write a table in Markdown"
		if format == ledger.JSON {
			words = "write JSON"
		}
		f.Func(string(format), "", "", words, func(string) error {
			*to = format
			return nil
		})
	}
}

// ledgerOutput cuts the lines of a table, and of nothing else.
func ledgerOutput(format ledger.Format) io.Writer {
	if format == ledger.Text {
		return terminal.Lines(os.Stdout)
	}
	return os.Stdout
}

func cgroupLedger() *cli.Command {
	var format ledger.Format
	c := &cli.Command{
		Summary: "Show what each OCI resource limit is on version 1, on version 2 and for systemd.",
		Run:     func([]string) error { return ledger.WriteTable(ledgerOutput(format), format) },
	}
	formatFlags(&c.Flags, &format)
	return c
}

func (p *program) cgroupTranslate() *cli.Command {
	var format ledger.Format
	var layout, shares string
	systemd := 0
	c := &cli.Command{
		Args: "FILE", Least: 1, Most: 1,
		Summary: "Show what a container's resource limits become on a host, without changing anything.",
		Help: "FILE is a resources object, or a whole config.json; - is standard input. With --systemd it prints\n" +
			"the unit's properties and what is written to files besides; otherwise only the files.",
		Examples: []string{
			"berth cgroup translate --layout unified config.json",
			`echo '{"cpu": {"shares": 512}}' | berth cgroup translate --layout unified --systemd 252 -`,
		},
	}
	c.Flags.String(&layout, "layout", "", "legacy|hybrid|unified", "how cgroups are mounted (default: as on this host)")
	c.Flags.Int(&systemd, "systemd", "", "VERSION", "for units under this version of systemd")
	c.Flags.String(&shares, "shares", "", "logarithmic|linear", "how CPU shares become a weight (default: logarithmic)")
	formatFlags(&c.Flags, &format)
	c.Run = func(args []string) error {
		where, err := p.layout(layout, systemd)
		if err != nil {
			return err
		}
		formula := ledger.Logarithmic
		switch shares {
		case "", ledger.Logarithmic.String():
		case ledger.Linear.String():
			formula = ledger.Linear
		default:
			return fmt.Errorf("--shares %q: it is logarithmic or linear", shares)
		}
		data, err := readInput(args[0], os.Stdin)
		if err != nil {
			return err
		}
		resources, unknown, err := cgrouptool.ParseResources(data)
		if err == nil {
			_, err = spec.CheckResources(resources)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", inputName(args[0]), err)
		}
		p.warnOfKeys(inputName(args[0]), unknown)
		translation, err := cgrouptool.Translate(resources, where, formula)
		if err != nil {
			return err
		}
		return ledger.WriteTranslation(ledgerOutput(format), format, translation)
	}
	return c
}

// layout is the named one, or this host's.
func (p *program) layout(name string, systemd int) (ledger.Layout, error) {
	if systemd < 0 {
		return ledger.Layout{}, errors.New("--systemd: a version is a number such as 252")
	}
	if name != "" {
		layout, ok := ledger.Named(name, systemd)
		if !ok {
			return layout, fmt.Errorf("--layout %q: it is legacy, hybrid or unified", name)
		}
		return layout, nil
	}
	tools, err := p.cgroupTools(false)
	if err != nil {
		return ledger.Layout{}, err
	}
	layout := tools.Host.Layout()
	layout.Systemd = systemd
	return layout, nil
}
