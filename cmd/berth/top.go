package main

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/node/inventory"
)

func (p *program) topCommand() *cli.Command {
	o := &topOptions{order: cgrouptool.ByCPU, every: time.Second, times: -1}
	var tree bool
	c := &cli.Command{
		Args: "[ID...]", Most: -1,
		Summary: "Show the resource usage of containers, live.",
		Help: "Shows all containers of this machine, or those named; * and ? match parts of a name. Those that berth did not create\n" +
			"are called by their engine and id, as docker/3f9a0c41b27d; with --root, only those in that state directory are shown.\n" +
			"%CPU is of one processor.\n" +
			"Bars show the share of all processors, and of the memory limit. P.CPU, P.MEM and P.IO are pressure (PSI): the percentage\n" +
			"of the last ten seconds in which some task waited. Keys: c, m, i, t, p sort, + and - change the interval, space\n" +
			"refreshes, q quits. If the output is not a terminal, it prints one sample as plain lines, or -n of them.",
		Examples: []string{"berth top -m", "berth top -n 1 --json 'web-*'", "berth top --tree"},
	}
	o.defineView(&c.Flags)
	c.Flags.Bool(&tree, "tree", "", "include the cgroups inside each container")
	c.Run = func(args []string) error {
		for _, pattern := range args {
			if _, err := path.Match(pattern, ""); err != nil {
				return fmt.Errorf("%q is neither an id nor a pattern: %w (a pattern is written with *, ? and [a-z])", pattern, err)
			}
		}
		r, err := p.runtime()
		if err != nil {
			return err
		}
		tools, err := p.cgroupTools(false)
		if err != nil {
			return err
		}
		var others []inventory.Container
		if slices.ContainsFunc(args, func(word string) bool { return !isPattern(word) }) {
			if others, err = p.others(tools.Host); err != nil {
				return err
			}
		}
		for _, pattern := range args {
			if isPattern(pattern) || slices.ContainsFunc(others, func(o inventory.Container) bool { return o.Name() == pattern }) {
				continue
			}
			c, err := r.Load(pattern)
			if err != nil {
				return err
			}
			c.Close()
		}
		debug.SetGCPercent(100) // this may last
		depth := 0
		if tree {
			depth = -1
		}
		ranking := tools.Ranking(o.order, runtime.NumCPU())
		ranking.Title = "CONTAINER"
		return o.run(tools.NewNamedMeter(func() ([]cgrouptool.Named, error) { return p.groups(r, tools.Host, args) }, depth), ranking)
	}
	return c
}

// isPattern says whether path.Match could find another name than the word itself.
func isPattern(word string) bool { return strings.ContainsAny(word, `*?[\`) }

// others are the containers of the machine, whatever made them; none where one state directory is
// asked about.
func (p *program) others(host *cgroup.Host) ([]inventory.Container, error) {
	if p.rootGiven {
		return nil, nil
	}
	return inventory.Find("", host)
}

// groups are the cgroups of the containers that are meant.
func (p *program) groups(r *container.Runtime, host *cgroup.Host, patterns []string) ([]cgrouptool.Named, error) {
	ids, err := r.List()
	if err != nil {
		return nil, err
	}
	meant := func(name string) bool {
		return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok })
	}
	if p.rootGiven { // else all are looked at, to know which of the others are berth's
		ids = slices.DeleteFunc(ids, func(id string) bool { return !meant(id) })
	}
	own := make(map[string]bool, len(ids))
	list := make([]cgrouptool.Named, 0, len(ids))
	err = r.Each(ids, func(id string, c *container.Container, err error) {
		switch {
		case err == nil && c.Cgroup.Path != "":
			own[c.Cgroup.Path] = true
			if meant(id) {
				list = append(list, cgrouptool.Named{Name: id, Path: c.Cgroup.Path})
			}
		case err != nil && !errors.Is(err, container.ErrNotExist):
			p.log.Debug(err.Error()) // half made, or half removed
		}
	})
	if err != nil {
		return nil, err
	}
	others, err := p.others(host)
	if err != nil {
		return nil, err
	}
	for i := range others {
		if o := &others[i]; !own[o.Cgroup] && meant(o.Name()) {
			list = append(list, cgrouptool.Named{Name: o.Name(), Path: o.Cgroup})
		}
	}
	return list, nil
}
