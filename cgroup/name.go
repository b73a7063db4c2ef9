package cgroup

import (
	"fmt"
	"strings"
)

// escapeName makes a free name safe as the name of a cgroup. Groups share
// their directory with the kernel's files, so a group named "tasks" or
// "cpu.shares" cannot be made; such names get a "_" in front, by the rule that
// systemd uses, and so do names that begin with "_" or ".".
func escapeName(name string) string {
	if collides(name) {
		return "_" + name
	}
	return name
}

// unescapeName undoes escapeName.
func unescapeName(name string) string { return strings.TrimPrefix(name, "_") }

func collides(name string) bool {
	if name == "" || name[0] == '_' || name[0] == '.' {
		return true
	}
	switch name {
	case "tasks", "notify_on_release", "release_agent":
		return true
	}
	prefix, _, dotted := strings.Cut(name, ".")
	if !dotted {
		return false
	}
	switch prefix {
	// The core's own files, version 2's io and irq (irq.pressure), and all controllers.
	case "cgroup", "io", "irq":
		return true
	}
	return isLegacyController(prefix)
}

// cleanPath checks a path of a group below a mount, and gives its one
// spelling: absolute, without "." and doubled slashes.
func cleanPath(path string) (string, error) {
	if !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("cgroup path %q is not absolute", path)
	}
	clean := make([]byte, 0, len(path))
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			return "", fmt.Errorf("cgroup path %q has a \"..\" in it", path)
		case strings.ContainsAny(part, "\n\x00"):
			// The kernel refuses line breaks, which would garble /proc/PID/cgroup.
			return "", fmt.Errorf("cgroup path %q has a line break or a zero byte in it", path)
		case len(part) > 255:
			return "", fmt.Errorf("cgroup path %.40q… has a name longer than 255 bytes", path)
		}
		clean = append(clean, '/')
		clean = append(clean, part...)
	}
	if len(clean) == 0 {
		return "/", nil
	}
	return string(clean), nil
}

// parentOf gives the parent of a clean path, "/" of "/".
func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}
