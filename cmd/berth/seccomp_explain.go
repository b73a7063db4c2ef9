package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/cmd/berth/internal/seccomptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/seccomp"
)

func (p *program) seccompExplainCommand() *cli.Command {
	var o seccompOptions
	var audit string
	c := &cli.Command{
		Args: "PROFILE [SYSCALL]", Most: 2,
		Summary: "Show what a profile does with each system call, or which rules decide one call.",
		Help: profileHelp + "\nSYSCALL is a name, or a number of the architecture.\n" +
			"\n" +
			"--audit reads what the kernel logs of seccomp: a line of it, or with - the lines of standard\n" +
			"input. With PROFILE the rules that decide each call follow.",
		Examples: []string{
			"berth seccomp explain config.json", "berth seccomp explain default clone3", "berth seccomp explain default 258",
			"journalctl -k --grep type=1326 | berth seccomp explain --audit -",
		},
	}
	o.define(&c.Flags)
	c.Flags.String(&audit, "audit", "", "LINE", "name the call of a line of the kernel's log, or of the lines of standard input for -")
	c.Run = func(args []string) error {
		switch {
		case audit != "" && len(args) < 2:
			return o.explainLogged(audit, args)
		case audit != "":
			return errors.New("--audit names the system call, so that there is no SYSCALL to give")
		case len(args) == 0:
			return errors.New("an argument is missing: PROFILE")
		}
		native, profile, err := o.read(args[0])
		if err != nil {
			return err
		}
		if len(args) == 2 {
			return o.explainCall(native, args[0], profile, args[1])
		}
		e, err := seccomp.Explain(native, profile)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return o.write(e)
	}
	return c
}

// explainCall explains a call by its name or number.
func (o *seccompOptions) explainCall(native specs.Arch, path string, profile *specs.LinuxSeccomp, call string) error {
	if number, err := strconv.ParseUint(call, 0, 32); err == nil {
		name, ok := seccomp.SyscallName(native, uint32(number))
		if !ok {
			return fmt.Errorf("%s has no system call %s", native, call)
		}
		call = name
	}
	e, err := seccomp.ExplainSyscall(native, profile, call)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return o.write(e)
}

// explainLogged names the calls of the kernel's log, and says what the profile does with each.
func (o *seccompOptions) explainLogged(text string, args []string) error {
	all := text == "-"
	if all {
		data, err := readInput("-", os.Stdin)
		if err != nil {
			return err
		}
		text = string(data)
	}
	var native specs.Arch
	var profile *specs.LinuxSeccomp
	if len(args) > 0 {
		var err error
		if native, profile, err = o.read(args[0]); err != nil {
			return err
		}
	}
	found := 0
	for line := range strings.Lines(text) {
		logged, err := seccomptool.ParseLogged(line)
		if all && errors.Is(err, seccomptool.ErrNotSeccomp) {
			continue
		}
		if err != nil {
			return fmt.Errorf("--audit: %w", err)
		}
		found++
		fmt.Println(escape.Message(logged.String()))
		if profile == nil || logged.Name == "" {
			continue
		}
		if err := o.explainCall(native, args[0], profile, logged.Name); err != nil {
			return err
		}
	}
	if found == 0 {
		return fmt.Errorf("--audit: %w", seccomptool.ErrNotSeccomp)
	}
	return nil
}
