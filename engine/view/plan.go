package view

import (
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/json"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// A Step is one thing that is done, in words.
type Step struct {
	What    string
	Pointer string // the config entry that it comes from, "" for a default
}

// A Section is a group of steps of one kind.
type Section struct {
	Title string
	Steps []Step
}

// Sections tells the Plan in words, in the order in which it is carried out.
func Sections(p *plan.Plan) []Section {
	sections := []Section{
		{"Cgroup", cgroupSteps(p)},
		{"Resource control (resctrl)", rdtSteps(p.Rdt)},
		{"Namespaces", namespaceSteps(p)},
		{"Root file system", rootSteps(p)},
		{"Mounts", mountSteps(p)},
		{"Devices", deviceSteps(p)},
		{"Paths", pathSteps(p)},
		{"Names and kernel parameters", nameSteps(p)},
		{"Hooks", hookSteps(p)},
		{"Process", processSteps(&p.Process)},
	}
	kept := sections[:0]
	for _, s := range sections {
		if len(s.Steps) > 0 {
			kept = append(kept, s)
		}
	}
	return kept
}

// PlanText is the Plan for people to read.
func PlanText(p *plan.Plan, warnings []string) []byte {
	text := heading(p, warnings)
	for _, s := range Sections(p) {
		text = append(append(append(text, '\n'), s.Title...), '\n')
		for _, step := range s.Steps {
			text = appendStep(append(text, "  "...), step)
		}
	}
	return text
}

// PlanJSON writes the Plan as a list of sections.
func PlanJSON(p *plan.Plan, warnings []string, w *json.Writer) {
	w.Object()
	w.Key("id").String(p.ID)
	w.Key("bundle").String(p.Bundle)
	w.Key("warnings").Strings(warnings)
	w.Key("sections").Array()
	for _, s := range Sections(p) {
		w.Object()
		w.Key("title").String(s.Title)
		w.Key("steps").Array()
		for _, step := range s.Steps {
			w.Object()
			w.Key("what").String(step.What)
			if step.Pointer != "" {
				w.Key("pointer").String(step.Pointer)
			}
			w.End()
		}
		w.End()
		w.End()
	}
	w.End()
	w.End()
}

func cgroupSteps(p *plan.Plan) []Step {
	c := &p.Cgroup
	if c.None {
		return []Step{{What: "stay in the caller's cgroup"}}
	}
	steps := []Step{{"make " + c.Path, c.At}}
	if c.Unit != nil {
		steps = UnitSteps(p)
		steps = append(steps, Step{"use its cgroup " + c.Path, c.At})
	}
	for _, w := range c.Writes {
		what := "write " + strconv.Quote(w.Value) + " to " + w.File
		if w.Note != "" {
			what += " (" + w.Note + ")"
		}
		steps = append(steps, Step{what, plan.ResourcesAt + w.Pointer})
	}
	steps = append(steps, deviceRuleSteps(p)...)
	if c.Payload != "" {
		steps = append(steps, Step{"put the processes into " + c.Path + "/" + c.Payload, payloadAt(p)})
	}
	if c.Unit != nil && c.Unit.Machine != nil {
		steps = append(steps, Step{"register it with systemd-machined as " + c.Unit.Machine.Name, c.Unit.Machine.At})
	}
	return steps
}

// payloadAt is the entry that asks for a cgroup inside of the unit's.
func payloadAt(p *plan.Plan) string {
	if p.Annotations[spec.SubgroupAnnotation] != "" {
		return spec.Join("/annotations", spec.SubgroupAnnotation)
	}
	return p.Cgroup.At
}

func namespaceSteps(p *plan.Plan) []Step {
	var steps []Step
	for _, n := range p.Namespaces {
		what := "new " + string(n.Type)
		if n.Path != "" {
			what = "join " + string(n.Type) + " " + n.Path
		}
		steps = append(steps, Step{what, n.At})
	}
	steps = append(steps, mapSteps("uid", p.IDs.UID, "/linux/uidMappings/")...)
	steps = append(steps, mapSteps("gid", p.IDs.GID, "/linux/gidMappings/")...)
	for line := range strings.Lines(p.TimeOffsets) {
		steps = append(steps, Step{"clock offset " + strings.TrimSpace(line), "/linux/timeOffsets"})
	}
	return steps
}

func mapSteps(kind string, maps []specs.LinuxIDMapping, at string) []Step {
	var steps []Step
	for i, m := range maps {
		steps = append(steps, Step{"map " + kind + " " + number(m.ContainerID) + " to the host's " + number(m.HostID) + ", " + number(m.Size) + " of them", at + strconv.Itoa(i)})
	}
	return steps
}

func number(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func rootSteps(p *plan.Plan) []Step {
	what := p.Root.Path
	if p.Root.Readonly {
		what += ", read-only"
	}
	steps := []Step{{what, "/root/path"}, {"propagation " + propagationName(p.Root.Propagation), "/linux/rootfsPropagation"}}
	if p.Root.Discard {
		steps = append(steps, Step{"keep writes to it in memory, and lose them with the container", p.Root.DiscardAt})
		if p.Root.DiscardBut != "" {
			steps = append(steps, Step{"refuse writes to " + p.Root.DiscardBut, spec.Join("/annotations", spec.RootReadonlyAnnotation)})
		}
	}
	if p.NoPivot {
		steps = append(steps, Step{What: "without pivot_root"})
	}
	return steps
}

func propagationName(flags uintptr) string {
	name := ""
	if flags&unix.MS_REC != 0 {
		name = "r"
	}
	switch flags &^ unix.MS_REC {
	case unix.MS_SHARED:
		return name + "shared"
	case unix.MS_SLAVE:
		return name + "slave"
	case unix.MS_UNBINDABLE:
		return name + "unbindable"
	}
	return name + "private"
}

func mountSteps(p *plan.Plan) []Step {
	steps := make([]Step, 0, len(p.Mounts))
	for i := range p.Mounts {
		steps = append(steps, Step{mountLine(&p.Mounts[i]), p.Mounts[i].At})
	}
	return steps
}

// mountLine tells a mount in a line.
func mountLine(m *plan.Mount) string {
	var b strings.Builder
	switch {
	case m.Remount:
		b.WriteString("remount " + m.Destination)
	case m.Bind:
		b.WriteString("bind " + m.Source + " on " + m.Destination)
	case m.Cgroup:
		b.WriteString("the container's cgroups on " + m.Destination)
	default:
		b.WriteString(m.Type + " on " + m.Destination)
	}
	if m.Recursive {
		b.WriteString(", with what is mounted below")
	}
	words := plan.AttributeWords(m.Set, "")
	words = append(words, plan.AttributeWords(m.RecSet, "r")...)
	for _, flag := range m.Propagation {
		words = append(words, propagationName(flag))
	}
	if m.IDMap != nil {
		words = append(words, "idmap")
	}
	if m.CopyUp {
		words = append(words, "tmpcopyup")
	}
	words = append(words, m.Params...)
	if len(words) > 0 {
		b.WriteString(" (" + strings.Join(words, ",") + ")")
	}
	if m.Loosen != 0 {
		b.WriteString(", without other restrictions of the source's mount")
	}
	return b.String()
}

const (
	denyDevices = "devices: deny all but these"
	ofEvery     = " (every container has it)"
)

// deviceRuleSteps says which devices may be used, and by which entry.
func deviceRuleSteps(p *plan.Plan) []Step {
	c := &p.Cgroup
	if c.Devices == nil {
		return nil
	}
	if c.Devices.AllowsAll() {
		return []Step{{"devices: allow all", devicesAt(p)}}
	}
	steps := []Step{{denyDevices, devicesAt(p)}}
	for _, r := range c.Devices.Rules() {
		what, at := "devices: allow "+r.String(), c.DevicesAt[r.Index]
		if !r.Allow {
			what = "devices: deny " + r.String()
		}
		if at == "" {
			what += ofEvery
		}
		steps = append(steps, Step{what, at})
	}
	return steps
}

// devicesAt is the entry with the rules for devices, "" where the config has none.
func devicesAt(p *plan.Plan) string {
	for _, at := range p.Cgroup.DevicesAt {
		if strings.HasPrefix(at, plan.ResourcesAt) {
			return plan.ResourcesAt + "/devices"
		}
	}
	return ""
}

func deviceSteps(p *plan.Plan) []Step {
	var steps []Step
	for _, d := range p.Devices {
		what := d.Path + " " + string(d.Type)
		if d.Type != 'p' {
			what += " " + number(d.Major) + ":" + number(d.Minor)
		}
		what += " mode " + strconv.FormatUint(uint64(d.Mode), 8)
		if d.UID != 0 || d.GID != 0 {
			what += " owner " + number(d.UID) + ":" + number(d.GID)
		}
		if d.Bind {
			what += ", the host's by bind mount"
		}
		steps = append(steps, Step{what, d.At})
	}
	for _, l := range p.Links {
		steps = append(steps, Step{What: l.Path + " -> " + l.Target})
	}
	for _, d := range p.NetDevs {
		what := "move the network device " + d.Name
		if d.NewName != "" {
			what += " and call it " + d.NewName
		}
		steps = append(steps, Step{what, d.At})
	}
	return steps
}

func pathSteps(p *plan.Plan) []Step {
	var steps []Step
	for _, m := range p.Masked {
		steps = append(steps, Step{"hide " + m.Path, m.At})
	}
	for _, r := range p.Readonly {
		steps = append(steps, Step{"read-only " + r.Path, r.At})
	}
	return steps
}

func nameSteps(p *plan.Plan) []Step {
	var steps []Step
	if p.Hostname != "" {
		steps = append(steps, Step{"host name " + p.Hostname, "/hostname"})
	}
	if p.Domainname != "" {
		steps = append(steps, Step{"domain name " + p.Domainname, "/domainname"})
	}
	for _, s := range p.Sysctls {
		steps = append(steps, Step{s.File + " = " + s.Value, s.At})
	}
	if p.NetUp {
		steps = append(steps, Step{What: "bring up the loopback device"})
	}
	if p.Keyring != "" {
		steps = append(steps, Step{What: "new session keyring " + p.Keyring})
	}
	return steps
}

func hookSteps(p *plan.Plan) []Step {
	var steps []Step
	for _, kind := range []struct {
		name  string
		hooks []specs.Hook
	}{
		//lint:ignore SA1019 configs still have it, and it runs
		{"prestart", p.Hooks.Prestart}, {"createRuntime", p.Hooks.CreateRuntime}, {"createContainer", p.Hooks.CreateContainer},
		{"startContainer", p.Hooks.StartContainer}, {"poststart", p.Hooks.Poststart}, {"poststop", p.Hooks.Poststop},
	} {
		for i, h := range kind.hooks {
			what := kind.name + " " + h.Path
			if len(h.Args) > 0 {
				what += " as " + quoted(h.Args)
			}
			if h.Env != nil {
				what += ", environment " + quoted(h.Env)
			}
			if h.Timeout != nil {
				what += ", for at most " + strconv.Itoa(*h.Timeout) + " s"
			}
			steps = append(steps, Step{what, "/hooks/" + kind.name + "/" + strconv.Itoa(i)})
		}
	}
	return steps
}
