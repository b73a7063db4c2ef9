package seccomptool

import (
	"slices"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Killed says why a process below a profile may have ended by SIGSYS. Which call it was is known to
// the kernel alone: the profile says what it kills for.
func Killed(p *specs.LinuxSeccomp, at string) string {
	const log = "the kernel's log names the call (journalctl -k --grep type=1326, and berth seccomp explain --audit reads it)"
	if p == nil {
		return "killed by SIGSYS, and its config has no seccomp profile: a filter of its own did it"
	}
	var causes []string
	for i, rule := range p.Syscalls {
		if kills(rule.Action) {
			names := slices.Clone(rule.Names)
			if len(names) > 4 {
				names = append(names[:4], "…")
			}
			causes = append(causes, strings.Join(names, ", ")+" ("+at+"/syscalls/"+strconv.Itoa(i)+")")
		}
	}
	if kills(p.DefaultAction) {
		causes = append(causes, "what it does not name ("+at+"/defaultAction)")
	}
	// Each profile kills for calls of an architecture that it does not name.
	causes = append(causes, "calls of other architectures ("+at+"/architectures)")
	return "killed by SIGSYS: the seccomp profile kills for " + strings.Join(causes, ", ") + "; " + log
}

func kills(a specs.LinuxSeccompAction) bool {
	switch a {
	case specs.ActKill, specs.ActKillThread, specs.ActKillProcess, specs.ActTrap:
		return true
	}
	return false
}
