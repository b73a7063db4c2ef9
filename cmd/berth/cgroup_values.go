package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/json"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// values is what a get command asks for.
type values struct {
	targets     targetFlags
	controllers []string
	names       []string
	all         bool
	noHeads     bool
	bare        bool
	json        bool
}

func (p *program) cgroupGet() *cli.Command {
	v := &values{}
	c := &cli.Command{
		Args: "[CGROUP…]", Most: -1,
		Summary: "Read cgroup files, or limits by their OCI names.",
		Help: "-r takes the name of a file (memory.max) or of an OCI resources field (memory.limit,\n" +
			"cpu.shares, hugepageLimits.2MB), which is read from whichever file this host has for it.\n" +
			"A name that is both means the file. Without -r all files are shown.",
		Examples: []string{"berth cgroup get -r memory.limit -r pids.limit demo", "berth cgroup get -g memory demo", "berth cgroup get -n -v -r cpu.stat demo"},
	}
	c.Flags.Func("group", "g", "CONTROLLERS[:CGROUP]", "only the files of these controllers", func(text string) error {
		if !strings.Contains(text, ":") {
			list, err := cgrouptool.ParseControllers(text)
			v.controllers = append(v.controllers, list...)
			return err
		}
		target, err := cgrouptool.ParseTarget(text)
		v.targets.list = append(v.targets.list, target)
		return err
	})
	c.Flags.Strings(&v.names, "variable", "r", "FILE|FIELD", "read this file or field; may be repeated")
	c.Flags.Bool(&v.all, "all", "a", "all files, of any controller")
	c.Flags.Bool(&v.noHeads, "no-heading", "n", "omit the line that names the cgroup")
	c.Flags.Bool(&v.bare, "values-only", "v", "omit the names")
	jsonFlag(&c.Flags, &v.json)
	c.Run = func(args []string) error { return p.get(v, args) }
	return c
}

func (p *program) get(v *values, args []string) error {
	list, err := v.targets.with(args)
	if err != nil {
		return err
	}
	tools, err := p.cgroupTools(false)
	if err != nil {
		return err
	}
	w := json.NewWriter(nil, "  ")
	w.Object()
	var b bytes.Buffer
	for i, target := range list {
		found, err := v.read(tools, target)
		if err != nil {
			return err
		}
		w.Key(target.Path).Object()
		for _, value := range found {
			w.Key(value.Name).String(value.Text)
		}
		w.End()
		if i > 0 && !v.noHeads {
			b.WriteByte('\n')
		}
		v.print(&b, target, found)
	}
	w.End()
	if v.json {
		b.Reset()
		b.Write(append(w.Bytes(), '\n'))
	}
	return writeOut(&b)
}

func (v *values) read(tools *cgrouptool.Tools, target cgrouptool.Target) ([]cgrouptool.Value, error) {
	g, err := tools.Open(target)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	if len(v.names) > 0 && !v.all {
		return tools.Get(g, v.names)
	}
	controllers := append(append([]string(nil), v.controllers...), target.Controllers...)
	if v.all {
		controllers = nil
	}
	return tools.GetAll(g, controllers)
}

// print writes as cgget(1) does: a value of several lines goes on behind a tab.
func (v *values) print(b *bytes.Buffer, target cgrouptool.Target, found []cgrouptool.Value) {
	if !v.noHeads {
		fmt.Fprintf(b, "%s:\n", target.Path)
	}
	for _, value := range found {
		text := strings.ReplaceAll(value.Text, "\n", "\n\t")
		if v.bare {
			fmt.Fprintf(b, "%s\n", text)
			continue
		}
		fmt.Fprintf(b, "%s: %s\n", value.Name, text)
	}
}

func (p *program) cgroupSet() *cli.Command {
	var targets targetFlags
	var settings []string
	file, source := "", ""
	c := &cli.Command{
		Args: "[LIMIT=VALUE…] [CGROUP…]", Most: -1,
		Summary: "Set the limits of cgroups.",
		Help: "LIMIT is a file of the cgroup (memory.max), which gets the value unchanged, or an OCI resources\n" +
			"field (memory.limit=64M, cpu.shares=512, pids.limit=max), which is converted to what this host\n" +
			"has for it: see berth cgroup ledger. A name that is both means the file. Per-device fields are\n" +
			"written as blockIO.throttleReadBpsDevice='8:0 1M', huge pages as hugepageLimits.2MB=64M, and\n" +
			"devices='deny a, allow c 1:3 rwm' replaces all rules.",
		Examples: []string{
			"berth cgroup set memory.limit=64M pids.limit=20 demo",
			"berth cgroup set -r cpu.quota=50000 -g cpu:/demo",
			"berth cgroup set --copy-from demo other",
			`echo '{"memory": {"limit": 67108864}}' | berth cgroup set --resources - demo`,
		},
	}
	targets.define(&c.Flags)
	c.Flags.Strings(&settings, "variable", "r", "LIMIT=VALUE", "same as the argument")
	c.Flags.String(&file, "resources", "", "FILE", "read limits from a resources object or a config.json; - for standard input")
	c.Flags.String(&source, "copy-from", "", "CGROUP", "copy the limits of another cgroup first")
	targets.defineForce(&c.Flags)
	c.Run = func(args []string) error {
		paths := args[:0:0]
		for _, arg := range args {
			// A path has no dot before an equals sign; who has such a cgroup writes ./ in front.
			if name, _, found := strings.Cut(arg, "="); found && !strings.ContainsAny(name, "/:") {
				settings = append(settings, arg)
			} else {
				paths = append(paths, arg)
			}
		}
		list, err := targets.with(paths)
		if err != nil {
			return err
		}
		if len(settings) == 0 && file == "" && source == "" {
			return errors.New("no limit is given: it is written as LIMIT=VALUE")
		}
		return p.set(targets.force, list, settings, file, source)
	}
	return c
}

func (p *program) set(force bool, list []cgrouptool.Target, settings []string, file, source string) error {
	tools, err := p.cgroupTools(force)
	if err != nil {
		return err
	}
	var given *specs.LinuxResources
	if file != "" {
		var unknown []spec.Complaint
		data, err := readInput(file, os.Stdin)
		if err != nil {
			return fmt.Errorf("--resources: %w", err)
		}
		if given, unknown, err = cgrouptool.ParseResources(data); err != nil {
			return fmt.Errorf("%s: %w", inputName(file), err)
		}
		p.warnOfKeys(inputName(file), unknown)
	}
	var from *cgroup.Group
	if source != "" {
		target, err := cgrouptool.ParseTarget(source)
		if err == nil {
			from, err = tools.Open(target)
		}
		if err != nil {
			return fmt.Errorf("--copy-from: %w", err)
		}
		defer from.Close()
	}
	for _, target := range list {
		g, err := tools.Open(target)
		if err != nil {
			return err
		}
		defer g.Close()
		settings := settings
		if from != nil {
			copied, err := tools.Copied(from, g)
			if err != nil {
				return fmt.Errorf("--copy-from: %w", err)
			}
			settings = append(copied, settings...)
		}
		resources, files, err := sortSettings(settings, given, func(name string) bool { return tools.HasFile(g, name) })
		if err != nil {
			return err
		}
		report, err := tools.Set(g, resources, files)
		p.tell(report)
		if err != nil {
			return err
		}
	}
	return nil
}

// warnOfKeys tells of keys in a file that no one reads.
func (p *program) warnOfKeys(file string, unknown []spec.Complaint) {
	for _, key := range unknown {
		p.log.Warn(file + ": " + key.Error())
	}
}

// sortSettings tells files from fields.
func sortSettings(settings []string, given *specs.LinuxResources, isFile func(string) bool) (*specs.LinuxResources, []cgrouptool.Setting, error) {
	resources := &specs.LinuxResources{}
	if given != nil {
		*resources = *given
	}
	var files []cgrouptool.Setting
	for _, text := range settings {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" {
			return nil, nil, fmt.Errorf("%q is not written as LIMIT=VALUE", text)
		}
		if !isFile(name) {
			known, err := setField(resources, name, value)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
			if known {
				continue
			}
		}
		files = append(files, cgrouptool.Setting{Name: name, Value: value})
	}
	return resources, files, nil
}

// readInput reads a file, or what stands for it: - is standard input.
func readInput(file string, stdin io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(stdin, spec.MaxSize))
	}
	return os.ReadFile(file)
}

// inputName is what messages call the file that readInput reads.
func inputName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}
