package integration

import "strings"

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
