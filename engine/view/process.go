package view

import (
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/caps"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

func processSteps(p *plan.Process) []Step {
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
	steps = append(steps, landlockSteps(p.Landlock)...)
	steps = append(steps, Step{"working directory " + p.Cwd, p.At + "/cwd"})
	for _, e := range p.Env {
		steps = append(steps, Step{"environment " + strconv.Quote(e), p.At + "/env"})
	}
	return append(steps, Step{"execute " + quoted(p.Args), p.At + "/args"})
}

func quoted(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = strconv.Quote(w)
	}
	return strings.Join(list, " ")
}

// rdtSteps tells what is asked of Intel's Resource Director Technology.
func rdtSteps(rdt *specs.LinuxIntelRdt) []Step {
	const at = "/linux/intelRdt"
	if rdt == nil {
		return nil
	}
	steps := []Step{{"a group for the container alone", at}}
	if rdt.ClosID != "" {
		steps[0] = Step{"class of service " + rdt.ClosID, at + "/closID"}
	}
	for i, line := range rdt.Schemata {
		steps = append(steps, Step{"schemata " + line, at + "/schemata/" + strconv.Itoa(i)})
	}
	if rdt.L3CacheSchema != "" {
		steps = append(steps, Step{"schemata " + rdt.L3CacheSchema, at + "/l3CacheSchema"})
	}
	if rdt.MemBwSchema != "" {
		steps = append(steps, Step{"schemata " + rdt.MemBwSchema, at + "/memBwSchema"})
	}
	if rdt.EnableMonitoring {
		steps = append(steps, Step{"a monitoring group", at + "/enableMonitoring"})
	}
	return steps
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

func landlockSteps(l *plan.Landlock) []Step {
	if l == nil {
		return nil
	}
	steps := []Step{{What: "Landlock: no file may be read, executed, written or made, but for"}}
	for _, r := range l.Rules {
		word := "read"
		switch {
		case r.Access&unix.LANDLOCK_ACCESS_FS_WRITE_FILE != 0:
			word = "read and written"
		case r.Access&unix.LANDLOCK_ACCESS_FS_EXECUTE != 0:
			word = "read and executed"
		}
		steps = append(steps, Step{"Landlock: what is below " + r.Path + " may be " + word, r.At})
	}
	return steps
}
