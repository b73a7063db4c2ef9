package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// membership is one line of /proc/PID/cgroup: where a process is in one hierarchy.
type membership struct {
	unified     bool
	name        string
	controllers []string
	path        string // as this process's cgroup namespace names it
	deleted     bool   // the directory is gone, and the process still in it
}

// parseMemberships reads a /proc/PID/cgroup text: "ID:CONTROLLERS:PATH" a line,
// see cgroups(7). Paths may hold colons, but no line breaks.
func parseMemberships(text []byte) ([]membership, error) {
	var list []membership
	for line := range bytes.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(string(line), "\n"), ":", 3)
		if len(parts) != 3 || parts[2] == "" {
			return nil, fmt.Errorf("line %q is not a cgroup membership", bytes.TrimSpace(line))
		}
		m := membership{path: parts[2], unified: parts[0] == "0" && parts[1] == ""}
		m.path, m.deleted = strings.CutSuffix(m.path, " (deleted)")
		if !m.unified {
			for part := range strings.SplitSeq(parts[1], ",") {
				if name, named := strings.CutPrefix(part, "name="); named {
					m.name = name
				} else {
					m.controllers = append(m.controllers, part)
				}
			}
		}
		list = append(list, m)
	}
	return list, nil
}

// in reports whether the membership is of this hierarchy.
func (m *membership) in(h *Hierarchy) bool {
	switch {
	case h.Version == 2:
		return m.unified
	case m.unified:
		return false
	case len(h.Controllers) > 0:
		return slices.Contains(m.controllers, h.Controllers[0])
	}
	return m.name == h.Name
}

// within turns a path of /proc/PID/cgroup into one below the mount point. Both
// that file and the mount's root are named relative to our cgroup namespace.
func (h *Hierarchy) within(path string) (string, error) {
	if strings.HasPrefix(h.Root, "/..") {
		// The mount shows more than our namespace, whose own name in it
		// nothing tells: neither this table nor /proc/self/cgroup.
		return "", fmt.Errorf("%s is mounted on %s from above this cgroup namespace", h, h.Mountpoint)
	}
	if h.Root == "/" {
		if path == "/.." || strings.HasPrefix(path, "/../") {
			return "", fmt.Errorf("cgroup %s is outside of this cgroup namespace", path)
		}
		return path, nil
	}
	rest, below := strings.CutPrefix(path, h.Root)
	if !below || rest != "" && rest[0] != '/' {
		return "", fmt.Errorf("cgroup %s is not below %s, which is all that is mounted on %s", path, h.Root, h.Mountpoint)
	}
	if rest == "" {
		rest = "/"
	}
	return rest, nil
}

// memberships reads where a process is; pid 0 is this process.
func (h *Host) memberships(pid int) ([]membership, error) {
	path := h.proc("self/cgroup")
	if pid != 0 {
		path = h.proc(strconv.Itoa(pid) + "/cgroup")
	}
	text, err := readWhole(unix.AT_FDCWD, path, make([]byte, 1024))
	if err == nil {
		var list []membership
		if list, err = parseMemberships(text); err == nil {
			return list, nil
		}
	}
	if errors.Is(err, unix.ENOENT) {
		err = os.ErrProcessDone
	}
	return nil, &Error{Op: "read", Path: path, Err: err}
}
