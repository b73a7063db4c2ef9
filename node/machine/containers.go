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

// Describe says who a process is, for a report: its program, pid and unit or
// cgroup; "" if it is gone.
func (m *Machine) Describe(pid int) (name, cgroup string) {
	p := process{m, pid}
	if name = p.executable(); name == "" {
		name = p.read("comm")
	}
	if name == "" {
		return "", ""
	}
	return name, p.cgroup()
}

// File is the path of a cgroup's file; "" if the cgroup is not there.
func (m *Machine) File(group, controller, file string) string {
	g, err := m.Cgroups.Open(group)
	if err != nil {
		return ""
	}
	defer g.Close()
	dir := g.Directory(controller)
	if dir == "" {
		return ""
	}
	return dir + "/" + file
}
