package plan

import (
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/caps"
	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/spec"
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
func (p *Plan) Sections() []Section {
	sections := []Section{
		{"Cgroup", p.cgroupSteps()},
		{"Namespaces", p.namespaceSteps()},
		{"Root file system", p.rootSteps()},
		{"Mounts", p.mountSteps()},
		{"Devices", p.deviceSteps()},
		{"Paths", p.pathSteps()},
		{"Names and kernel parameters", p.nameSteps()},
		{"Hooks", p.hookSteps()},
		{"Process", p.Process.steps()},
	}
	kept := sections[:0]
	for _, s := range sections {
		if len(s.Steps) > 0 {
			kept = append(kept, s)
		}
	}
	return kept
}

// Text is the Plan for people to read.
func (p *Plan) Text() []byte {
	text := append([]byte("Container "), p.ID...)
	text = append(append(text, " of the bundle "...), p.Bundle...)
	text = append(text, '\n')
	for _, w := range p.Warnings {
		text = append(append(append(text, "warning: "...), w...), '\n')
	}
	for _, s := range p.Sections() {
		text = append(append(append(text, '\n'), s.Title...), '\n')
		for _, step := range s.Steps {
			text = append(append(text, "  "...), step.What...)
			if step.Pointer != "" {
				text = append(append(text, "  # "...), step.Pointer...)
			}
			text = append(text, '\n')
		}
	}
	return text
}

// JSON writes the Plan as a list of sections.
func (p *Plan) JSON(w *json.Writer) {
	w.Object()
	w.Key("id").String(p.ID)
	w.Key("bundle").String(p.Bundle)
	w.Key("warnings").Strings(p.Warnings)
	w.Key("sections").Array()
	for _, s := range p.Sections() {
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

func (p *Plan) cgroupSteps() []Step {
	c := &p.Cgroup
	if c.None {
		return []Step{{What: "stay in the caller's cgroup"}}
	}
	steps := []Step{{"make " + c.Path, c.At}}
	if c.Unit != nil {
		steps = c.Unit.steps(p)
		steps = append(steps, Step{"use its cgroup " + c.Path, c.At})
	}
	for _, w := range c.Writes {
		what := "write " + strconv.Quote(w.Value) + " to " + w.File
		if w.Note != "" {
			what += " (" + w.Note + ")"
		}
		steps = append(steps, Step{what, resourcesAt + w.Pointer})
	}
	if c.Devices != nil {
		for _, r := range c.Devices.Rules() {
			steps = append(steps, Step{"devices: " + r.String(), resourcesAt + "/devices"})
		}
	}
	if c.Payload != "" {
		steps = append(steps, Step{"put the processes into " + c.Path + "/" + c.Payload, payloadAt(p)})
	}
	if c.Unit != nil && c.Unit.Machine != nil {
		steps = append(steps, Step{"register it with systemd-machined as " + c.Unit.Machine.Name, c.Unit.Machine.At})
	}
	return steps
}

// payloadAt is the entry that asks for a cgroup inside of the unit's.
func payloadAt(p *Plan) string {
	if p.Annotations[SubgroupAnnotation] != "" {
		return spec.Join("/annotations", SubgroupAnnotation)
	}
	return p.Cgroup.At
}

func (p *Plan) namespaceSteps() []Step {
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

func (p *Plan) rootSteps() []Step {
	what := p.Root.Path
	if p.Root.Readonly {
		what += ", read-only"
	}
	steps := []Step{{what, "/root/path"}, {"propagation " + propagationName(p.Root.Propagation), "/linux/rootfsPropagation"}}
	if p.Root.Discard {
		steps = append(steps, Step{"keep writes to it in memory, and lose them with the container", p.Root.DiscardAt})
		if p.Root.DiscardBut != "" {
			steps = append(steps, Step{"refuse writes to " + p.Root.DiscardBut, spec.Join("/annotations", RootReadonlyAnnotation)})
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

func (p *Plan) mountSteps() []Step {
	steps := make([]Step, 0, len(p.Mounts))
	for i := range p.Mounts {
		steps = append(steps, Step{p.Mounts[i].String(), p.Mounts[i].At})
	}
	return steps
}

// String tells a mount in a line.
func (m *Mount) String() string {
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
	words := attributeWords(m.Set, "")
	words = append(words, attributeWords(m.RecSet, "r")...)
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
	return b.String()
}

func attributeWords(set uint64, prefix string) []string {
	var words []string
	for _, word := range [...]string{"ro", "nosuid", "nodev", "noexec", "nodiratime", "nosymfollow", "noatime", "strictatime"} {
		if set&findOption(word).set != 0 {
			words = append(words, prefix+word)
		}
	}
	return words
}

func (p *Plan) deviceSteps() []Step {
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

func (p *Plan) pathSteps() []Step {
	var steps []Step
	for _, m := range p.Masked {
		steps = append(steps, Step{"hide " + m.Path, m.At})
	}
	for _, r := range p.Readonly {
		steps = append(steps, Step{"read-only " + r.Path, r.At})
	}
	return steps
}

func (p *Plan) nameSteps() []Step {
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

func (p *Plan) hookSteps() []Step {
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
			if h.Timeout != nil {
				what += ", for at most " + strconv.Itoa(*h.Timeout) + " s"
			}
			steps = append(steps, Step{what, "/hooks/" + kind.name + "/" + strconv.Itoa(i)})
		}
	}
	return steps
}

func (p *Process) steps() []Step {
	if len(p.Args) == 0 {
		return nil
	}
	steps := []Step{{"user " + number(p.UID) + ", group " + number(p.GID) + groupList(p.Groups), p.At + "/user"}}
	for _, set := range []struct {
		name string
		set  caps.Set
	}{{"bounding", p.Bounding}, {"effective", p.Effective}, {"permitted", p.Permitted}, {"inheritable", p.Inheritable}, {"ambient", p.Ambient}} {
		list := "none"
		if names := set.set.Names(); len(names) > 0 {
			list = strings.Join(names, " ")
		}
		steps = append(steps, Step{set.name + " capabilities: " + list, p.At + "/capabilities/" + set.name})
	}
	for _, l := range p.Rlimits {
		steps = append(steps, Step{l.Name + " " + limitText(l.Soft) + ", hard " + limitText(l.Hard), l.At})
	}
	if p.NoNewPrivileges {
		steps = append(steps, Step{"no_new_privs", p.At + "/noNewPrivileges"})
	}
	if p.OOMScoreAdj != nil {
		steps = append(steps, Step{"oom_score_adj " + strconv.Itoa(*p.OOMScoreAdj), p.At + "/oomScoreAdj"})
	}
	if p.AppArmor != "" {
		steps = append(steps, Step{"AppArmor profile " + p.AppArmor, p.At + "/apparmorProfile"})
	}
	if p.SELinux != "" {
		steps = append(steps, Step{"SELinux label " + p.SELinux, p.At + "/selinuxLabel"})
	}
	if p.Terminal {
		steps = append(steps, Step{"a terminal", p.At + "/terminal"})
	}
	if p.Seccomp != nil {
		steps = append(steps, Step{"seccomp filter of " + strconv.Itoa(len(p.Seccomp.Filter.Program)) + " instructions", "/linux/seccomp"})
	}
	steps = append(steps, p.Landlock.steps()...)
	steps = append(steps, Step{"working directory " + p.Cwd, p.At + "/cwd"})
	quoted := make([]string, len(p.Args))
	for i, a := range p.Args {
		quoted[i] = strconv.Quote(a)
	}
	return append(steps, Step{"execute " + strings.Join(quoted, " "), p.At + "/args"})
}

func groupList(groups []uint32) string {
	if len(groups) == 0 {
		return ""
	}
	list := make([]string, len(groups))
	for i, g := range groups {
		list[i] = number(g)
	}
	return ", also of groups " + strings.Join(list, ",")
}

func limitText(v uint64) string {
	if v == unix.RLIM_INFINITY {
		return "unlimited"
	}
	return strconv.FormatUint(v, 10)
}
