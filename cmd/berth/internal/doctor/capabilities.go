package doctor

import (
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/caps"
)

// capabilities looks for what root lacks when it is not the host's own: in a
// container, or under a unit that takes some away.
func capabilities(m *Machine) []Finding {
	if m.UID != 0 {
		return nil
	}
	var effective caps.Set
	for line := range strings.Lines(m.read("proc/self/status")) {
		if text, ok := strings.CutPrefix(line, "CapEff:"); ok {
			n, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
			if err != nil {
				return nil
			}
			effective = caps.Set(n)
		}
	}
	needed, _ := caps.SetOf([]string{"CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_SYS_CHROOT", "CAP_CHOWN", "CAP_FOWNER",
		"CAP_DAC_OVERRIDE", "CAP_KILL", "CAP_MKNOD", "CAP_NET_ADMIN"})
	useful, _ := caps.SetOf([]string{"CAP_SYS_RESOURCE", "CAP_SYS_PTRACE", "CAP_SYS_NICE", "CAP_AUDIT_WRITE", "CAP_SETFCAP"})
	f := Finding{Check: "capabilities", For: Root, Found: "all that are needed"}
	if missing := needed &^ effective; missing != 0 {
		f.State, f.Found = Gap, "without "+strings.Join(missing.Names(), " ")
		f.Without = "containers can't be made, or not all of them"
		f.Fix = []Fix{{Run: "run it with these: on the host itself, or in a container by docker run --privileged, or in a unit without CapabilityBoundingSet="}}
	} else if missing := useful &^ effective; missing != 0 {
		f.State, f.Found = Note, "without "+strings.Join(missing.Names(), " ")
		f.Without = "what asks for them fails: raising resource limits, lowering oomScoreAdj, realtime scheduling, …"
	}
	return []Finding{f}
}
