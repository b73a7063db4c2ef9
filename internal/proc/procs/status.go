package procs

import (
	"strconv"
	"strings"
)

// Status gives values of a process's status file (proc_pid_status(5)), by their names; "" for one
// that the kernel does not write.
func Status(pid int, names ...string) ([]string, error) {
	text, err := readFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return nil, err
	}
	values := make([]string, len(names))
	for line := range strings.Lines(string(text)) {
		found, value, _ := strings.Cut(line, ":")
		for i, name := range names {
			if found == name {
				values[i] = strings.TrimSpace(value)
			}
		}
	}
	return values, nil
}
