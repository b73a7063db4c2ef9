package machine

import "github.com/berth-runtime/berth/cgroup"

// IsContainer reports whether processes of a cgroup, or of one below it, are in
// another pid namespace than ours. Names say nothing of that.
func (m *Machine) IsContainer(g *cgroup.Group) bool {
	pids, err := g.AllProcs()
	if err != nil {
		return false
	}
	for _, pid := range pids {
		p := process{m, pid}
		if ns := p.namespace(); ns != "" && !p.ours() {
			return true
		}
	}
	return false
}
