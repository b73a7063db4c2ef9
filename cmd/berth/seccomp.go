package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/terminal"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

const profileHelp = "PROFILE is a seccomp profile, or a config.json that contains one; - is standard input, and\n" +
	"\"default\" is Berth's default profile."

func (p *program) seccompCommand() *cli.Command {
	return &cli.Command{
		Summary: "Explain, learn, compare and compile seccomp profiles.",
		Commands: func() []cli.Sub {
			return []cli.Sub{
				{Name: "explain", Define: p.seccompExplainCommand}, {Name: "learn", Define: p.seccompLearnCommand},
				{Name: "diff", Define: p.seccompDiffCommand}, {Name: "compile", Define: p.seccompCompileCommand},
			}
		},
	}
}

// seccompOptions are what both commands take.
type seccompOptions struct {
	arch string
	json bool
}

func (o *seccompOptions) define(f *cli.Flags) {
	o.arch = string(seccomp.NativeArch())
	f.String(&o.arch, "arch", "", "ARCH", "compile for another architecture")
	f.Bool(&o.json, "json", "", "as JSON")
}

// read gives the architecture of the machines that are meant, and the profile.
func (o *seccompOptions) read(path string) (specs.Arch, *specs.LinuxSeccomp, error) {
	if known := seccomp.Supported().Archs; !slices.Contains(known, o.arch) {
		return "", nil, fmt.Errorf("--arch %q: it is one of %s", o.arch, strings.Join(known, ", "))
	}
	profile, err := readProfile(path, os.Stdin)
	return specs.Arch(o.arch), profile, err
}

// texts are the two forms of what is to be told.
type texts interface {
	WriteText(io.Writer) error
	WriteJSON(io.Writer) error
}

func (o *seccompOptions) write(t texts) error {
	if o.json {
		return t.WriteJSON(os.Stdout)
	}
	return t.WriteText(terminal.Lines(os.Stdout))
}

func (p *program) seccompCompileCommand() *cli.Command {
	var o seccompOptions
	var output string
	c := &cli.Command{
		Args: "PROFILE", Least: 1, Most: 1,
		Summary: "Compile a profile: show the filter, or write it to a file.",
		Help: profileHelp + "\nThe file holds the kernel's struct sock_filter, one after the other, as bwrap --seccomp\n" +
			"and others load it.",
		Examples: []string{"berth seccomp compile config.json", "berth seccomp compile --output filter.bpf profile.json"},
		Run: func(args []string) error {
			native, profile, err := o.read(args[0])
			if err != nil {
				return err
			}
			filter, err := seccomp.CompileFor(native, profile)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			for _, u := range filter.Unknown {
				p.log.Warn(fmt.Sprintf("%s: %s: no architecture has a system call %q: it is left out", args[0], u.Pointer, u.Name))
			}
			switch output {
			case "":
				return o.write(filter)
			case "-":
				_, err = os.Stdout.Write(filter.Bytes())
				return err
			}
			return os.WriteFile(output, filter.Bytes(), 0o644)
		},
	}
	o.define(&c.Flags)
	c.Flags.String(&output, "output", "o", "FILE", "write the filter's bytes to a file, - for standard output")
	return c
}

// readProfile reads a seccomp profile by itself, or the one of a config.json.
func readProfile(name string, stdin io.Reader) (*specs.LinuxSeccomp, error) {
	if name == "default" {
		return seccomp.Default(), nil
	}
	data, err := readInput(name, stdin)
	if err != nil {
		return nil, err
	}
	if data, err = profileIn(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	profile, err := spec.ParseSeccomp(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return profile, nil
}

// profileIn finds the profile in a document: it is one, or a config.json.
func profileIn(data []byte) ([]byte, error) {
	d := json.NewDecoder(data)
	profile, config := "", false
	foreign := ""
	for d.Object(); d.Next(); {
		switch d.Key() {
		case "linux":
			config = true
			for d.Object(); d.Next(); {
				if d.Key() == "seccomp" {
					profile = d.Raw()
				}
			}
		case "ociVersion":
			config = true
		case "archMap":
			foreign = d.Key()
		case "syscalls":
			foreign = foreignKey(d, foreign)
		}
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	switch {
	case config && profile == "":
		return nil, errors.New("this config has no /linux/seccomp")
	case config:
		return []byte(profile), nil
	case foreign != "":
		return nil, fmt.Errorf("%q belongs to the profile format of Docker and Podman, which they convert to the OCI format for each container; use linux.seccomp from such a container's config.json", foreign)
	}
	return data, nil
}

// foreignKey looks in a list of rules for conditions that only an engine can
// judge: leaving them out would make another profile of it.
func foreignKey(d *json.Decoder, found string) string {
	for d.Array(); d.Next(); {
		for d.Object(); d.Next(); {
			switch d.Key() {
			case "includes", "excludes":
				found = d.Key()
			}
		}
	}
	return found
}
