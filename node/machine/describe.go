package machine

import (
	"fmt"
	"math"
	"strconv"
)

// Describe says who a process is, for a report: its program, pid, unit or cgroup,
// and its login user, whatever user it runs as now.
func (m *Machine) Describe(pid int) string {
	p := process{m, pid}
	name := p.executable()
	if name == "" {
		name = p.read("comm")
	}
	if name == "" {
		return fmt.Sprintf("a process that has ended since (pid %d)", pid)
	}
	text := fmt.Sprintf("%s (pid %d, in %s", name, pid, p.cgroup())
	// The kernel has it where audit is built in; the greatest is nobody (audit_set_loginuid(3)).
	if login, err := strconv.ParseUint(p.read("loginuid"), 10, 32); err == nil && login != math.MaxUint32 {
		text += fmt.Sprintf(", logged in as user %d", login)
	}
	return text + ")"
}
