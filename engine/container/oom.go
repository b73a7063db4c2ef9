package container

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/plan"
)

// killedBy adds to the news of a SIGKILL whether it was the cgroup's memory
// limit, as far as the cgroup still tells.
func (m *maker) killedBy() string {
	if m.group == nil {
		return ""
	}
	dir := m.group.Directory("memory")
	if dir == "" {
		return ""
	}
	if kills := counter(filepath.Join(dir, "memory.events"), "oom_kill") + counter(filepath.Join(dir, "memory.oom_control"), "oom_kill"); kills > 0 {
		return " (out of memory: linux.resources.memory.limit is too small even to set it up)"
	}
	return ""
}

// counter reads one "name number" line of a file, 0 where there is none.
func counter(file, name string) uint64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
			return n
		}
	}
	return 0
}

// adjustOOM sets how likely the kernel is to kill the process. Lowering it takes
// CAP_SYS_RESOURCE of the host, so it is done from here.
func (c *Container) adjustOOM(pid int, p *plan.Process) error {
	if p.OOMScoreAdj == nil {
		return nil
	}
	err := os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", strconv.AppendInt(nil, int64(*p.OOMScoreAdj), 10), 0)
	if err == nil {
		return nil
	}
	hint := ""
	if os.IsPermission(err) {
		hint = " (lowering it needs CAP_SYS_RESOURCE)"
	}
	return fmt.Errorf("config.json: %s/oomScoreAdj: set it to %d: %w%s", p.At, *p.OOMScoreAdj, err, hint)
}
