package ledger

import "github.com/opencontainers/runtime-spec/specs-go"

func (t *translation) pids(p *specs.LinuxPids) {
	const at = "/pids/limit"
	if p == nil || p.Limit == nil || !t.checkLimit(at, *p.Limit) {
		return
	}
	n, note := *p.Limit, ""
	if n == 0 {
		// A limit of 0 would refuse the container's own first fork, and
		// systemd takes no TasksMax of 0.
		n, note = 1, "0 means 1"
	}
	// pids.max is the one file that wants "max" on v1 too.
	value, property := limit(n, true)
	t.set(at, at, value, note, property)
}
