package main

import (
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/cmd/internal/cli"
)

// Each offer is for a name that a help text has.
func TestOffersAreUsed(t *testing.T) {
	var names []string
	var look func(c *cli.Command)
	look = func(c *cli.Command) {
		for arg := range strings.FieldsSeq(c.Args) {
			names = append(names, strings.Trim(arg, "[].…"))
		}
		for _, f := range c.Flags.List {
			names = append(names, f.Value)
		}
		if c.Commands != nil {
			for _, sub := range c.Commands() {
				look(sub.Command())
			}
		}
	}
	look(newProgram().command())
	all := "\n" + strings.Join(names, "\n") + "\n"
	for _, o := range offers {
		if !strings.Contains(all, "\n"+o.name+"\n") {
			t.Errorf("no help text has %s", o.name)
		}
	}
}

// What completion calls a limit, set takes: a field, or a file, whose names have no capitals.
func TestOfferedLimits(t *testing.T) {
	list := newProgram().offerLimits("")
	fields := 0
	for _, word := range list {
		name := strings.TrimSuffix(word, "=")
		if strings.HasSuffix(name, ".") {
			name += "mlx5_0.hcaHandles"
		}
		known, _ := setField(&specs.LinuxResources{}, name, "1")
		if known {
			fields++
		} else if name != strings.ToLower(name) {
			t.Errorf("set does not know %s", word)
		}
	}
	if len(list) > 0 && fields < 20 {
		t.Errorf("%d fields in %q", fields, list)
	}
}

func TestOfferSignals(t *testing.T) {
	for _, test := range []struct{ prefix, want string }{
		{"", "TERM"}, {"T", "TERM"}, {"SIG", "SIGTERM"}, {"t", "term"}, {"sigt", "sigterm"}, {"RTMIN+1", "RTMIN+12"}, {"sigrtmin+", "sigrtmin+30"},
	} {
		if list := strings.Join(offerSignals(nil, test.prefix), " ") + " "; !strings.Contains(" "+list, " "+test.want+" ") {
			t.Errorf("%q: no %s in %s", test.prefix, test.want, list)
		}
	}
	for _, name := range offerSignals(nil, "SIGRTMIN+") {
		if _, err := parseSignal(name); err != nil && !strings.HasSuffix(name, "+") {
			t.Error(err)
		}
	}
}
