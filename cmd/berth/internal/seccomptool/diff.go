package seccomptool

import (
	"io"
	"maps"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/seccomp"
)

// A Difference is a call that two profiles treat differently.
type Difference struct {
	Arch         specs.Arch
	Call         string // "" for what is true of the whole architecture
	First, Other string // ALLOW, ERRNO EPERM, …, with the conditions
}

// Differences are in the order of architectures and names.
type Differences []Difference

// Diff compares what two profiles do on machines of an architecture, not how they are written.
func Diff(native specs.Arch, first, other *specs.LinuxSeccomp) (Differences, error) {
	a, err := effects(native, first)
	if err != nil {
		return nil, err
	}
	b, err := effects(native, other)
	if err != nil {
		return nil, err
	}
	archs := slices.Collect(maps.Keys(a))
	for arch := range b {
		if a[arch] == nil {
			archs = append(archs, arch)
		}
	}
	slices.Sort(archs)
	var list Differences
	for _, arch := range archs {
		switch {
		case a[arch] == nil:
			list = append(list, Difference{Arch: arch, First: "KILL_PROCESS", Other: "has rules"})
			continue
		case b[arch] == nil:
			list = append(list, Difference{Arch: arch, First: "has rules", Other: "KILL_PROCESS"})
			continue
		}
		for _, call := range slices.Sorted(maps.Keys(a[arch])) {
			if x, y := a[arch][call], b[arch][call]; x != y {
				list = append(list, Difference{arch, call, x, y})
			}
		}
	}
	return list, nil
}

// effects is what becomes of each call that an architecture has a name for.
func effects(native specs.Arch, profile *specs.LinuxSeccomp) (map[specs.Arch]map[string]string, error) {
	e, err := seccomp.Explain(native, profile)
	if err != nil {
		return nil, err
	}
	all := map[specs.Arch]map[string]string{}
	for _, arch := range e.Archs {
		calls := map[string]string{}
		for _, r := range arch.Ranges {
			var words []string
			for _, rule := range r.Rules {
				words = append(words, rule.Result+" if "+strings.Join(rule.Conditions, " and "))
			}
			slices.Sort(words) // mostly their order says nothing
			words = append(words, r.Result)
			for _, name := range r.Names {
				calls[name] = strings.Join(words, "; else ")
			}
		}
		all[arch.Arch] = calls
	}
	return all, nil
}

// WriteText writes a line for each, as SCMP_ARCH_X86_64 openat2: ALLOW → ERRNO EPERM.
func (list Differences) WriteText(w io.Writer) error {
	for _, d := range list {
		name := string(d.Arch)
		if d.Call != "" {
			name += " " + d.Call
		}
		if _, err := io.WriteString(w, name+": "+d.First+" → "+d.Other+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// WriteJSON writes them as an array.
func (list Differences) WriteJSON(w io.Writer) error {
	j := json.NewWriter(nil, "  ")
	j.Array()
	for _, d := range list {
		j.Object()
		j.Key("arch").String(string(d.Arch))
		if d.Call != "" {
			j.Key("call").String(d.Call)
		}
		j.Key("first").String(d.First)
		j.Key("other").String(d.Other)
		j.End()
	}
	j.End()
	_, err := w.Write(append(j.Bytes(), '\n'))
	return err
}
