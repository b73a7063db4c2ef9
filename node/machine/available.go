package machine

import (
	"os"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/node/config/resource"
)

// Available is how much of a resource is left: of memory what the kernel believes that it can give
// without swapping (MemAvailable), of pids what the tasks leave of the capacity. False is for
// resources of which that is not known.
func (m *Machine) Available(n resource.Name, capacity int64) (int64, bool) {
	switch n {
	case resource.Memory:
		text, err := os.ReadFile(m.Root + "/proc/meminfo")
		if err != nil {
			return 0, false
		}
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
				kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
				return kb << 10, err == nil
			}
		}
	case resource.PIDs:
		// The fourth field is how many tasks can run, and how many there are (proc_loadavg(5)).
		text, _ := os.ReadFile(m.Root + "/proc/loadavg")
		if fields := strings.Fields(string(text)); len(fields) > 3 {
			_, all, _ := strings.Cut(fields[3], "/")
			tasks, err := strconv.ParseInt(all, 10, 64)
			return capacity - tasks, err == nil
		}
	}
	return 0, false
}
