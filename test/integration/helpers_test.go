package integration

import (
	"strconv"
	"strings"
)

// statusField returns a field of /proc/PID/status.
func statusField(status, name string) string {
	for _, line := range strings.Split(status, "\n") {
		if key, value, ok := strings.Cut(line, ":"); ok && key == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// ptr is for the optional fields of a config.
func ptr[T any](v T) *T { return &v }

// procPath names a file of a process.
func procPath(pid int, name string) string { return "/proc/" + strconv.Itoa(pid) + "/" + name }
