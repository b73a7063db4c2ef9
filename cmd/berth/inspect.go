package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/berth-runtime/berth/cmd/berth/internal/seccomptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/view"
	"github.com/berth-runtime/berth/internal/escape"
	"github.com/berth-runtime/berth/internal/json"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

func (p *program) inspectCommand() *cli.Command {
	var asJSON bool
	c := p.simple("Show everything about a container: its limits, mounts and namespaces, and why it ended.", func(c *container.Container) error {
		i, err := view.Inspect(c)
		if err != nil {
			return err
		}
		var text []byte
		if asJSON {
			w := json.NewWriter(nil, "  ")
			i.JSON(w)
			text = append(w.Bytes(), '\n')
		} else {
			text = inspectionText(i)
		}
		_, err = os.Stdout.Write(text)
		return err
	})
	own := c.Run
	c.Run = func(args []string) error {
		err := own(args)
		if !errors.Is(err, container.ErrNotExist) {
			return err
		}
		other := p.otherNamed(args[0])
		if other == nil {
			return err
		}
		text := otherText(other)
		if asJSON {
			text = otherJSON(other)
		}
		_, err = os.Stdout.Write(text)
		return err
	}
	c.Help = "Limits are shown as the kernel has them, which may be rounded. Mounts and namespaces are those of the first process. For\n" +
		"a stopped container it shows why: the exit status if it was run with --keep, and whether it was OOM-killed, by which limit.\n" +
		"With --explain-denials of run and exec it shows the system calls that the seccomp profile refused. Of a running container of\n" +
		"another engine it shows the cgroup, the unit and the runtime, and which command has the rest."
	c.Flags.Bool(&asJSON, "json", "", "as JSON")
	return c
}

func inspectionText(i *view.Inspection) []byte {
	safe := escape.Line // names in a container may hold anything
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s is %s", i.State.ID, i.State.Status)
	if i.State.Pid != 0 {
		fmt.Fprintf(&b, ", process %d", i.State.Pid)
	}
	fmt.Fprintf(&b, ", made %s\n", i.State.Created.Local().Format("2006-01-02 15:04:05"))
	if end := i.End(); end != "" {
		fmt.Fprintf(&b, "It ended: %s\n", end)
		if e := i.State.Ended; e != nil && e.Signaled() && e.Signal() == unix.SIGSYS {
			var profile *specs.LinuxSeccomp
			if i.Plan.Process.Seccomp != nil {
				profile = i.Plan.Process.Seccomp.Profile
			}
			fmt.Fprintf(&b, "  %s\n", safe(seccomptool.Killed(profile, "/linux/seccomp")))
		}
	} else if i.OOMKills > 0 {
		fmt.Fprintf(&b, "%d of its processes were OOM-killed\n", i.OOMKills)
	}
	if len(i.Denied) > 0 {
		fmt.Fprint(&b, "\nRefused system calls\n")
	}
	for n := range i.Denied {
		fmt.Fprintf(&b, "  %s\n", safe(i.Denied[n].String()))
	}
	if len(i.Limits) > 0 {
		fmt.Fprint(&b, "\nLimits now\n")
	}
	for _, l := range i.Limits {
		fmt.Fprintf(&b, "  %s: %s", l.File, safe(l.Now))
		if l.Pointer == "" {
			fmt.Fprintln(&b, "  # not set by linux.resources")
			continue
		}
		if l.Now != l.Set {
			fmt.Fprintf(&b, " (set to %s)", safe(l.Set))
		}
		fmt.Fprintf(&b, "  # %s\n", l.Pointer)
	}
	if len(i.Namespaces) > 0 {
		fmt.Fprint(&b, "\nNamespaces now\n")
	}
	for _, n := range i.Namespaces {
		fmt.Fprintf(&b, "  %s", n.ID)
		if n.Shared {
			fmt.Fprint(&b, ", shared with the host's")
		}
		fmt.Fprintln(&b)
	}
	if len(i.Mounts) > 0 {
		fmt.Fprint(&b, "\nMounts now\n")
	}
	for _, m := range i.Mounts {
		fmt.Fprintf(&b, "  %s %s %s\n", safe(m.Point), safe(m.Type), safe(m.Options))
	}
	b.WriteByte('\n')
	b.Write(view.PlanText(i.Plan, i.Plan.Warnings))
	return b.Bytes()
}
