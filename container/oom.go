package container

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
