package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/internal/json"
)

func (p *program) cgroupCommand() *cli.Command {
	return &cli.Command{
		Summary: "Create, limit, show and delete cgroups, on version 1, version 2 and hybrid hosts.",
		Help: "A cgroup is named by its path, in every hierarchy of the host, or as in cgroup-tools by\n" +
			"controllers:path (cpu,memory:/demo). A relative path starts at one parent, never at the root:\n" +
			"the unit that berth runs in if that is delegated, otherwise /berth.\n" +
			"Cgroups created by berth cgroup create can be changed by later commands; those of others\n" +
			"only with --force.",
		Examples: []string{
			"berth cgroup create demo && berth cgroup set memory.limit=64M pids.limit=20 demo",
			"berth cgroup run --memory 8G -- make -j",
			"berth cgroup exec demo make -j",
			"berth cgroup tree",
			"berth cgroup delete --kill demo",
		},
		Commands: func() []cli.Sub {
			return []cli.Sub{
				{Name: "create", Define: p.cgroupCreate}, {Name: "delete", Define: p.cgroupDelete}, {Name: "list", Define: p.cgroupList},
				{Name: "controllers", Define: p.cgroupControllers}, {Name: "run", Define: p.cgroupRun}, {Name: "exec", Define: p.cgroupExec}, {Name: "classify", Define: p.cgroupClassify},
				{Name: "get", Define: p.cgroupGet}, {Name: "set", Define: p.cgroupSet}, {Name: "tree", Define: p.cgroupTree},
				{Name: "top", Define: p.cgroupTop}, {Name: "ledger", Define: cgroupLedger}, {Name: "translate", Define: p.cgroupTranslate},
			}
		},
	}
}

// cgroupTools detects the host's cgroups.
func (p *program) cgroupTools(force bool) (*cgrouptool.Tools, error) {
	if err := p.log.Open(p.logFile, p.logFormat, p.debug); err != nil {
		return nil, err
	}
	tools, err := cgrouptool.New("")
	if err != nil {
		return nil, err
	}
	tools.Force = force
	tools.Warn = p.log.Warn
	return tools, nil
}

// targetFlags are the cgroups that a command line names: by -g, and by the
// arguments that are paths.
type targetFlags struct {
	list  []cgrouptool.Target
	force bool
}

func (t *targetFlags) define(f *cli.Flags) {
	f.Func("group", "g", "CONTROLLERS:CGROUP", "a cgroup in the hierarchies of these controllers; * means all, empty means version 2", func(text string) error {
		target, err := cgrouptool.ParseTarget(text)
		t.list = append(t.list, target)
		return err
	})
}

func (t *targetFlags) defineForce(f *cli.Flags) {
	f.Bool(&t.force, "force", "", "even if the cgroup has another owner")
}

// leading gives the cgroups, and the arguments behind them: without -g the first one is
// a cgroup's path.
func (t *targetFlags) leading(args []string) ([]cgrouptool.Target, []string, error) {
	if len(t.list) > 0 {
		return t.list, args, nil
	}
	target, err := cgrouptool.ParseTarget(args[0])
	if err != nil {
		return nil, nil, err
	}
	return []cgrouptool.Target{target}, args[1:], nil
}

// with adds arguments that name cgroups too.
func (t *targetFlags) with(args []string) ([]cgrouptool.Target, error) {
	list := t.list
	for _, arg := range args {
		target, err := cgrouptool.ParseTarget(arg)
		if err != nil {
			return nil, err
		}
		list = append(list, target)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no cgroup is named: give its path, or -g controllers:path")
	}
	return list, nil
}

// printJSON writes a document to standard output.
func printJSON(write func(w *json.Writer)) error {
	w := json.NewWriter(nil, "  ")
	write(w)
	_, err := os.Stdout.Write(append(w.Bytes(), '\n'))
	return err
}

func jsonFlag(f *cli.Flags, to *bool) { f.Bool(to, "json", "", "write JSON") }

// tell warns of what a change did otherwise than it was asked.
func (p *program) tell(report cgroup.Report) {
	for _, w := range report.Warnings {
		p.log.Warn(w.String())
	}
	for _, d := range report.Differences {
		text := d.String()
		if d.Pointer == "" {
			text = d.Path + " holds " + d.Holds + " where " + d.Wrote + " was written"
		}
		p.log.Warn(text)
	}
}

// writeOut gives a buffer to standard output in one piece.
func writeOut(b *bytes.Buffer) error {
	_, err := os.Stdout.Write(b.Bytes())
	return err
}
