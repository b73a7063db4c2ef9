package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/internal/json"
)

// cgroupToShow is one argument or -g, and the root where there is neither.
func (p *program) cgroupToShow(t *targetFlags, args []string) (*cgrouptool.Tools, cgrouptool.Target, error) {
	target := cgrouptool.Target{Path: "/"}
	if len(t.list)+len(args) > 0 {
		list, err := t.with(args)
		if err == nil && len(list) > 1 {
			err = fmt.Errorf("%d cgroups are named: it takes one", len(list))
		}
		if err != nil {
			return nil, target, err
		}
		target = list[0]
	}
	tools, err := p.cgroupTools(false)
	return tools, target, err
}

func (p *program) cgroupList() *cli.Command {
	var targets targetFlags
	var asJSON bool
	c := &cli.Command{
		Args: "[CGROUP]", Most: 1,
		Summary:  "List the cgroups of all hierarchies, or below one, as controllers:path.",
		Examples: []string{"berth cgroup list -g memory:/"},
	}
	targets.define(&c.Flags)
	jsonFlag(&c.Flags, &asJSON)
	c.Run = func(args []string) error {
		tools, target, err := p.cgroupToShow(&targets, args)
		if err != nil {
			return err
		}
		if asJSON {
			w := json.NewWriter(nil, "  ")
			w.Array()
			if err := tools.List(target, func(f cgrouptool.Found) error { f.JSON(w); return nil }); err != nil {
				return err
			}
			w.End()
			_, err := os.Stdout.Write(append(w.Bytes(), '\n'))
			return err
		}
		style := cgrouptool.StyleFor(os.Stdout, os.Getenv)
		out := bufio.NewWriter(os.Stdout)
		err = tools.List(target, func(f cgrouptool.Found) error {
			_, err := out.WriteString(style.Printable(f.Spelling()) + "\n")
			return err
		})
		if err != nil {
			return err
		}
		return out.Flush()
	}
	return c
}

func (p *program) cgroupControllers() *cli.Command {
	var all, mounts, ids, asJSON bool
	c := &cli.Command{
		Summary: "Show which hierarchy has which controller, and where it is enabled.",
		Help: "For version 2 it shows which cgroups enable a controller for their children; on version 1 a\n" +
			"controller is active in all cgroups of its hierarchy.",
	}
	c.Flags.Bool(&all, "all", "a", "include controllers that no hierarchy has")
	c.Flags.Bool(&mounts, "mounts", "m", "only the hierarchies and their mount points, like lssubsys")
	c.Flags.Bool(&ids, "hierarchy", "i", "include the number of the hierarchy")
	jsonFlag(&c.Flags, &asJSON)
	c.Run = func([]string) error {
		tools, err := p.cgroupTools(false)
		if err != nil {
			return err
		}
		if mounts {
			return mountsOf(tools, asJSON)
		}
		list, err := tools.Controllers()
		if err != nil {
			return err
		}
		kept := list[:0]
		for _, controller := range list {
			if all || controller.Home != nil {
				kept = append(kept, controller)
			}
		}
		if asJSON {
			return printJSON(func(w *json.Writer) {
				w.Array()
				for i := range kept {
					kept[i].JSON(w)
				}
				w.End()
			})
		}
		return tableOfControllers(kept, ids)
	}
	return c
}

func mountsOf(tools *cgrouptool.Tools, asJSON bool) error {
	if asJSON {
		return printJSON(func(w *json.Writer) {
			w.Array()
			for _, h := range tools.Host.Hierarchies() {
				w.Object()
				w.Key("hierarchy").String(h.String())
				w.Key("mountpoint").String(h.Mountpoint)
				w.End()
			}
			w.End()
		})
	}
	var b bytes.Buffer
	for _, h := range tools.Host.Hierarchies() {
		fmt.Fprintf(&b, "%s %s\n", h, h.Mountpoint)
	}
	return writeOut(&b)
}

func tableOfControllers(list []cgrouptool.Controller, ids bool) error {
	t := tabwriter.NewWriter(terminal.Lines(os.Stdout), 0, 1, 2, ' ', 0)
	style := cgrouptool.StyleFor(os.Stdout, os.Getenv)
	id := func(text string) string {
		if ids {
			return text + "\t"
		}
		return ""
	}
	fmt.Fprintf(t, "CONTROLLER\tVERSION\t%sMOUNTED AT\tCGROUPS\tENABLED IN\n", id("ID"))
	for _, c := range list {
		switch {
		case c.Home == nil && !c.Enabled:
			fmt.Fprintf(t, "%s\t-\t%s-\t-\tnowhere: disabled by cgroup_disable=\n", c.Name, id("-"))
		case c.Home == nil:
			fmt.Fprintf(t, "%s\t-\t%s-\t-\tnowhere: not mounted\n", c.Name, id("-"))
		case c.Home.Version == 1:
			fmt.Fprintf(t, "%s\tv1\t%s%s\t%d\tall of its hierarchy\n", c.Name, id(strconv.Itoa(c.ID)), c.Home.Mountpoint, c.Groups)
		default:
			where := "only in the root: not enabled anywhere"
			if len(c.Enablers) > 0 {
				const most = 3
				names := slices.Clone(c.Enablers[:min(most, len(c.Enablers))])
				for i, path := range names {
					names[i] = style.Printable(path)
				}
				where = "children of " + strings.Join(names, ", ")
				if more := len(c.Enablers) - most; more > 0 {
					where += fmt.Sprintf(" and %d more", more)
				}
			}
			fmt.Fprintf(t, "%s\tv2\t%s%s\t%d\t%s\n", c.Name, id("0"), c.Home.Mountpoint, c.Groups, where)
		}
	}
	return t.Flush()
}

func (p *program) cgroupTree() *cli.Command {
	var targets targetFlags
	var asJSON bool
	how := cgrouptool.Looking{Depth: -1}
	c := &cli.Command{
		Args: "[CGROUP]", Most: 1,
		Summary: "Show cgroups as a tree, with their memory, CPU and task usage.",
		Help:    "One path is one line, in however many hierarchies it exists. Limits follow a slash.",
	}
	targets.define(&c.Flags)
	depthFlag(&c.Flags, &how.Depth)
	c.Flags.Bool(&how.Processes, "processes", "p", "show processes too")
	c.Flags.Bool(&how.KernelThreads, "kernel", "k", "include kernel threads")
	jsonFlag(&c.Flags, &asJSON)
	c.Run = func(args []string) error {
		tools, target, err := p.cgroupToShow(&targets, args)
		if err != nil {
			return err
		}
		how.Processes = how.Processes || how.KernelThreads
		if asJSON {
			how.Parts = cgrouptool.All
		}
		tree, err := tools.Tree(target, how)
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(tree.JSON)
		}
		_, err = os.Stdout.WriteString(cgrouptool.StyleFor(os.Stdout, os.Getenv).Draw(tree))
		return err
	}
	return c
}

func depthFlag(f *cli.Flags, to *int) {
	f.Func("depth", "L", "N", "show this many levels of cgroups below the first", func(text string) error {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is not a number of levels", text)
		}
		*to = n
		return nil
	})
}
