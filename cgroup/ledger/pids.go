package ledger

import "github.com/opencontainers/runtime-spec/specs-go"

func (t *translation) pids(p *specs.LinuxPids) {
	const at = "/pids/limit"
	if p == nil || p.Limit == nil || !t.checkLimit(at, *p.Limit) {
		return
	}
	note := ""
	// pids.max is the one file that wants "max" on v1 too.
	value, property := limit(*p.Limit, true)
	if *p.Limit == 0 {
		// To a container with its first process in it 0 and 1 are the same.
		_, property = limit(1, true)
		note = "systemd has no TasksMax of 0, and gets 1"
	}
	t.set(at, at, value, note, property)
}
