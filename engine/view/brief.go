package view

import (
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/container"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/caps"
	"github.com/berth-runtime/berth/internal/escape"
)

// Brief tells what making a container would do in about thirty lines: what is the same for most
// containers in one line each, and the Program by its length.
func Brief(f *container.Foreseen) []byte {
	return append(append(heading(f.Plan, f.Warnings), '\n'), Columns(BriefSections(f))...)
}

// Columns writes sections with their titles at the side.
func Columns(sections []Section) (text []byte) {
	for _, s := range sections {
		title := s.Title
		for _, step := range s.Steps {
			text = append(text, title...)
			text = append(text, "            "[len(title):]...)
			text = appendStep(text, step)
			title = ""
		}
	}
	return text
}

// BriefSections are those of Brief.
func BriefSections(f *container.Foreseen) []Section {
	p := f.Plan
	return []Section{
		{"Cgroup", briefCgroup(p)},
		{"Resctrl", rdtSteps(p.Rdt)},
		{"Namespaces", briefNamespaces(p)},
		{"Root", rootSteps(p)},
		{"Mounts", mountSteps(p)},
		{"Devices", briefDevices(p)},
		{"Paths", PathSteps(p.Masked, p.Readonly)},
		{"Names", nameSteps(p)},
		{"Hooks", hookSteps(p)},
		{"Process", briefProcess(&p.Process)},
		{"Program", []Step{{What: briefProgram(f.Program)}}},
	}
}

// width is how long a list may get, in bytes.
const width = 90

// List joins as many words as fit into a line, and counts the other ones.
func List(words []string) string {
	var b strings.Builder
	for i, w := range words {
		if i > 0 && b.Len()+len(w) > width {
			return b.String() + " and " + strconv.Itoa(len(words)-i) + " more"
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(w)
	}
	return b.String()
}

// briefCgroup leaves out the rules for devices that every container has.
func briefCgroup(p *plan.Plan) []Step {
	var steps []Step
	usual := 0
	for _, s := range cgroupSteps(p) {
		if s.Pointer == "" && strings.HasSuffix(s.What, ofEvery) {
			usual++
			continue
		}
		if s.What == denyDevices {
			s.What = "devices: deny all but those that every container has"
		}
		steps = append(steps, s)
	}
	if usual == 0 { // the config has forbidden one, or allows all
		return cgroupSteps(p)
	}
	return steps
}

func briefNamespaces(p *plan.Plan) []Step {
	var made []string
	var steps []Step
	for i, s := range namespaceSteps(p) {
		if i < len(p.Namespaces) && p.Namespaces[i].Path == "" {
			made = append(made, string(p.Namespaces[i].Type))
			continue
		}
		steps = append(steps, s)
	}
	if len(made) > 0 {
		steps = append([]Step{{"new " + List(made), "/linux/namespaces"}}, steps...)
	}
	return steps
}

func briefDevices(p *plan.Plan) []Step {
	var steps []Step
	var usual, bound []string
	for i, s := range deviceSteps(p) {
		switch {
		case i < len(p.Devices) && p.Devices[i].At == "" && p.Devices[i].Bind:
			bound = append(bound, p.Devices[i].Path)
		case i < len(p.Devices) && p.Devices[i].At == "":
			usual = append(usual, p.Devices[i].Path)
		case i >= len(p.Devices) && i < len(p.Devices)+len(p.Links):
			usual = append(usual, p.Links[i-len(p.Devices)].Path)
		default:
			steps = append(steps, s)
		}
	}
	if len(usual) > 0 {
		steps = append([]Step{{What: List(usual)}}, steps...)
	}
	if len(bound) > 0 {
		steps = append([]Step{{What: List(bound) + ": the host's by bind mount"}}, steps...)
	}
	return steps
}

// PathSteps says which paths are hidden and read-only, in a line each.
func PathSteps(masked, read []plan.Path) []Step {
	var hidden, readonly []string
	for _, m := range masked {
		hidden = append(hidden, m.Path)
	}
	for _, r := range read {
		readonly = append(readonly, r.Path)
	}
	var steps []Step
	if len(hidden) > 0 {
		steps = append(steps, Step{"hide " + List(hidden), "/linux/maskedPaths"})
	}
	if len(readonly) > 0 {
		steps = append(steps, Step{"read-only " + List(readonly), "/linux/readonlyPaths"})
	}
	return steps
}

func briefProcess(p *plan.Process) []Step {
	var steps []Step
	var env []string
	for _, e := range p.Env {
		name, _, _ := strings.Cut(e, "=") // the value may be a secret
		env = append(env, name)
	}
	for _, s := range processSteps(p) {
		switch {
		case strings.HasPrefix(s.Pointer, p.At+"/capabilities/"):
			if s.Pointer == p.At+"/capabilities/bounding" {
				steps = append(steps, briefCapabilities(p)...)
			}
		case s.Pointer == p.At+"/env":
			if len(env) > 0 {
				steps = append(steps, Step{"environment " + List(env), s.Pointer})
			}
			env = nil
		default:
			steps = append(steps, s)
		}
	}
	return steps
}

// briefCapabilities has those that the process uses, and of the other sets what differs from that.
func briefCapabilities(p *plan.Process) []Step {
	at := p.At + "/capabilities"
	steps := []Step{{"capabilities: " + capabilityList(p.Effective), at}}
	for _, set := range []struct {
		name        string
		set, expect caps.Set
	}{
		{"bounding", p.Bounding, p.Effective}, {"permitted", p.Permitted, p.Effective},
		{"inheritable", p.Inheritable, 0}, {"ambient", p.Ambient, 0},
	} {
		if set.set != set.expect {
			steps = append(steps, Step{set.name + " capabilities: " + capabilityList(set.set), at + "/" + set.name})
		}
	}
	return steps
}

func capabilityList(s caps.Set) string {
	if s == 0 {
		return "none"
	}
	return List(s.Names())
}

// briefProgram counts the calls. Those after the execve are gone to from earlier ones, where
// something is missing or fails.
func briefProgram(p *program.Program) string {
	lines := p.Lines()
	usual := len(lines)
	for i := range lines {
		if lines[i].Call == "execve" || lines[i].Call == "execveat" {
			usual = i + 1
			break
		}
	}
	s := strconv.Itoa(usual) + " system calls"
	if more := len(lines) - usual; more > 0 {
		s += ", and " + strconv.Itoa(more) + " for what may be missing or fail"
	}
	return s + " (--program lists them, and all else that is left out here)"
}

// heading is the first lines, with the warnings.
func heading(p *plan.Plan, warnings []string) []byte {
	// A config may be a stranger's, who would have it read as something else.
	text := append([]byte("Container "), escape.Line(p.ID)...)
	text = append(append(text, " of the bundle "...), escape.Line(p.Bundle)...)
	text = append(text, '\n')
	for _, w := range warnings {
		text = append(append(append(text, "warning: "...), escape.Line(w)...), '\n')
	}
	return text
}

func appendStep(text []byte, step Step) []byte {
	text = append(text, escape.Line(step.What)...)
	if step.Pointer != "" {
		text = append(append(text, "  # "...), escape.Line(step.Pointer)...)
	}
	return append(text, '\n')
}
