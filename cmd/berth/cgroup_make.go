package main

import (
	"fmt"
	"io/fs"
	"strconv"

	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/internal/ptr"
)

func (p *program) cgroupCreate() *cli.Command {
	var targets targetFlags
	var access cgrouptool.Access
	var asJSON bool
	c := &cli.Command{
		Args: "[CGROUP…]", Most: -1,
		Summary: "Create cgroups, including missing parents.",
		Help: "On version 2 the controllers are enabled down to the cgroup. It is marked as created by berth\n" +
			"(with an extended attribute), so later commands may change it. -a and -t delegate it to others.",
		Examples: []string{"berth cgroup create -g cpu,memory:/demo", "berth cgroup create -a alice -t alice:users demo"},
	}
	targets.define(&c.Flags)
	c.Flags.Func("admin", "a", "USER:GROUP", "owner of the cgroup, who may set its limits and create cgroups in it", owner(&access.Admin))
	c.Flags.Func("tasks", "t", "USER:GROUP", "who may move processes into it", owner(&access.Tasks))
	c.Flags.Func("dperm", "d", "MODE", "permissions of its directories", mode(&access.DirMode))
	c.Flags.Func("fperm", "f", "MODE", "permissions of its files, within what each file allows", mode(&access.FileMode))
	c.Flags.Func("tperm", "s", "MODE", "permissions of its process lists (cgroup.procs, tasks)", mode(&access.TasksMode))
	targets.defineForce(&c.Flags)
	jsonFlag(&c.Flags, &asJSON)
	c.Run = func(args []string) error {
		list, err := targets.with(args)
		if err != nil {
			return err
		}
		tools, err := p.cgroupTools(targets.force)
		if err != nil {
			return err
		}
		var made []string
		for _, target := range list {
			dirs, err := tools.Create(target, access)
			if err != nil {
				return err
			}
			made = append(made, dirs...)
		}
		if !asJSON {
			return nil
		}
		return printJSON(func(w *json.Writer) { w.Strings(made) })
	}
	return c
}

func owner(to **cgrouptool.Account) func(string) error {
	return func(text string) error {
		account, err := cgrouptool.ParseAccount(text)
		*to = &account
		return err
	}
}

func mode(to **fs.FileMode) func(string) error {
	return func(text string) error {
		n, err := strconv.ParseUint(text, 8, 9)
		if err != nil {
			return fmt.Errorf("%q is not a mode such as 755", text)
		}
		*to = ptr.To(fs.FileMode(n))
		return nil
	}
}

func (p *program) cgroupDelete() *cli.Command {
	var targets targetFlags
	var how cgrouptool.Removal
	c := &cli.Command{
		Args: "[CGROUP…]", Most: -1,
		Summary: "Delete cgroups.",
		Help: "Without -r, a cgroup with cgroups below it is kept; without --kill or --move, so is one with\n" +
			"processes. Parents are always kept.",
		Examples: []string{"berth cgroup delete demo", "berth cgroup delete -r --kill -g memory:/demo"},
	}
	targets.define(&c.Flags)
	c.Flags.Bool(&how.Recursive, "recursive", "r", "including the cgroups below")
	c.Flags.Bool(&how.Kill, "kill", "", "kill the processes in them")
	c.Flags.Bool(&how.Move, "move", "", "move the processes in them to the parent, like cgdelete")
	targets.defineForce(&c.Flags)
	c.Run = func(args []string) error {
		if how.Kill && how.Move {
			return fmt.Errorf("--kill and --move: it is one or the other")
		}
		list, err := targets.with(args)
		if err != nil {
			return err
		}
		tools, err := p.cgroupTools(targets.force)
		if err != nil {
			return err
		}
		for _, target := range list {
			if err := tools.Delete(target, how); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}
