package main

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/cmd/internal/cli"
	"github.com/berth-runtime/berth/cmd/internal/clidoc"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/caps"
	"github.com/berth-runtime/berth/seccomp"
)

func (p *program) completionCommand() *cli.Command {
	var offer string
	c := &cli.Command{
		Args: "bash|zsh|fish", Least: 1, Most: 1,
		Summary:  "Print the shell completion script.",
		Examples: []string{"berth completion bash > /etc/bash_completion.d/berth", "berth completion fish > ~/.config/fish/completions/berth.fish"},
		Run: func(args []string) error {
			if offer != "" {
				return p.offer(offer, args[0])
			}
			var asked []string
			for _, o := range offers {
				asked = append(asked, o.name)
			}
			script, err := clidoc.Completion(clidoc.Tree(p.command()), args[0], asked...)
			if err != nil {
				return err
			}
			_, err = os.Stdout.Write(script)
			return err
		},
	}
	c.Flags.String(&offer, "offer", "", "NAME", "print what may stand for a name of the help; the scripts call it").Hidden = true
	return c
}

// offers are the names in help texts whose values only the program knows, and those that may begin
// with a prefix.
var offers = []struct {
	name string
	list func(p *program, prefix string) []string
}{
	{"ID", (*program).offerContainers},
	{"SIGNAL", offerSignals},
	{"SYSCALL", offerCalls},
	{"PROFILE", func(*program, string) []string { return []string{"default"} }},
	{"CGROUP", func(p *program, prefix string) []string { return p.offerCgroups(prefix, false) }},
	{"CONTROLLERS:CGROUP", func(p *program, prefix string) []string { return p.offerCgroups(prefix, true) }},
	{"CONTROLLERS[:CGROUP]", func(p *program, prefix string) []string { return p.offerCgroups(prefix, true) }},
	{"LIMIT=VALUE", (*program).offerLimits},
	{"FILE|FIELD", (*program).offerFields},
	{"CAPABILITY", offerCapabilities},
	{"CAPABILITY|ALL", func(p *program, prefix string) []string { return append(offerCapabilities(p, prefix), "ALL") }},
	{"NAME=SOFT[:HARD]", offerResourceLimits},
	{"SIZE", offerSizes},
}

// offer prints the offers for a name, one in each line. Errors are not completion's to tell.
func (p *program) offer(name, prefix string) error {
	out := bufio.NewWriter(os.Stdout)
	for _, o := range offers {
		if o.name != name {
			continue
		}
		for _, word := range o.list(p, prefix) {
			if strings.HasPrefix(word, prefix) {
				out.WriteString(word + "\n")
			}
		}
	}
	return out.Flush()
}

func (p *program) offerContainers(string) []string {
	r, err := p.runtime()
	if err != nil {
		return nil
	}
	ids, _ := r.List()
	return ids
}

// offerSignals writes them as the prefix is written: TERM, SIGTERM, term. Those that the kernel
// leaves to programs are many, and seldom meant.
func offerSignals(_ *program, prefix string) (list []string) {
	sig, upper := "", strings.ToUpper(prefix)
	if strings.HasPrefix(upper, "SIG") {
		sig = "SIG"
	}
	for n := unix.Signal(1); n <= 31; n++ {
		list = append(list, sig+strings.TrimPrefix(unix.SignalName(n), "SIG"))
	}
	if list = append(list, sig+"RTMIN+"); strings.HasPrefix(upper, sig+"RTMIN+") {
		for n := 1; n <= 30; n++ {
			list = append(list, sig+"RTMIN+"+strconv.Itoa(n))
		}
	}
	if prefix != upper {
		for i := range list {
			list[i] = strings.ToLower(list[i])
		}
	}
	return list
}

func offerCalls(*program, string) (list []string) {
	// The numbers of all architectures that there are end far below.
	for number := range uint32(1024) {
		if name, ok := seccomp.SyscallName(seccomp.NativeArch(), number); ok {
			list = append(list, name)
		}
	}
	return list
}

func (p *program) offerCgroups(prefix string, controllers bool) (list []string) {
	tools, err := cgrouptool.New("")
	if err != nil {
		return nil
	}
	if !controllers || strings.Contains(prefix, ":") {
		return tools.Begun(prefix)
	}
	// Before the colon it is a list, of which the last name is being written.
	done := prefix[:strings.LastIndexByte(prefix, ',')+1]
	for _, h := range tools.Host.Hierarchies() {
		names := h.Controllers
		if len(names) == 0 {
			names = []string{h.String()}
		}
		for _, name := range names {
			list = append(list, done+name+":")
		}
	}
	return list
}

// offerLimits are the fields of the ledger as set spells them, and the files that this host has for
// them.
func (p *program) offerLimits(string) (list []string) {
	tools, err := cgrouptool.New("")
	if err != nil {
		return nil
	}
	var files []string
	for _, e := range ledger.Table() {
		field, inner, perDevice := strings.Cut(strings.TrimPrefix(e.Field, "/"), "/*")
		group, name, _ := strings.Cut(field, "/")
		switch {
		case group == "unified": // its file is below
		case perDevice && (name == "" || name == "priorities"): // a size, a device or an interface follows
			list = append(list, strings.ReplaceAll(field, "/", ".")+".")
		case inner == "/leafWeight": // set has it for no device
		case name == "":
			list = append(list, group+"=")
		default:
			list = append(list, group+"."+name+"=")
		}
		if home := tools.Host.Controller(e.V1.Controller); home != nil && home.Version == 1 {
			files = append(files, e.V1.Files...)
		}
		home := tools.Host.Unified()
		if e.V2.Controller != "" {
			home = tools.Host.Controller(e.V2.Controller)
		}
		if home != nil && home.Version == 2 {
			files = append(files, e.V2.Files...)
		}
	}
	for _, file := range files {
		if !strings.Contains(file, "<") { // the size of a huge page
			list = append(list, file+"=")
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// offerFields are what get -r reads: limits, and the files of the cgroup that this process is in.
func (p *program) offerFields(prefix string) []string {
	list := p.offerLimits(prefix)
	for i := range list {
		list[i] = strings.TrimSuffix(list[i], "=")
	}
	tools, err := cgrouptool.New("")
	if err != nil {
		return nil
	}
	if own, err := tools.Host.OfProcess(os.Getpid()); err == nil {
		defer own.Close()
		for _, h := range tools.Host.Hierarchies() {
			files, _ := os.ReadDir(own.Directory(h.String()))
			for _, file := range files {
				if !file.IsDir() {
					list = append(list, file.Name())
				}
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func offerCapabilities(_ *program, prefix string) (list []string) {
	for n := range caps.Last + 1 {
		name := caps.Name(n)
		if !strings.HasPrefix(prefix, "CAP_") {
			name = strings.TrimPrefix(name, "CAP_")
		}
		list = append(list, name)
	}
	return list
}

func offerResourceLimits(_ *program, prefix string) (list []string) {
	if name, value, found := strings.Cut(prefix, "="); found {
		if soft, _, both := strings.Cut(value, ":"); both {
			return []string{name + "=" + soft + ":unlimited"}
		}
		return []string{name + "=unlimited"}
	}
	for _, name := range spec.Rlimits {
		list = append(list, strings.ToLower(strings.TrimPrefix(name, "RLIMIT_"))+"=")
	}
	return list
}

// offerSizes puts the suffixes behind a number.
func offerSizes(_ *program, prefix string) (list []string) {
	if prefix == "" || strings.Trim(prefix, "0123456789") != "" {
		return nil
	}
	for _, suffix := range []string{"K", "M", "G", "T"} {
		list = append(list, prefix+suffix)
	}
	return list
}
