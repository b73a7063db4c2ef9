package unit

import (
	"fmt"
	"strings"
)

const (
	sliceSuffix = ".slice"
	scopeSuffix = ".scope"
	rootSlice   = "-.slice"
)

// checkSlice refuses what systemd does not take for the name of a slice
// (slice_name_is_valid), with the reason.
func checkSlice(slice string) error {
	stem, ok := strings.CutSuffix(slice, sliceSuffix)
	switch {
	case strings.Contains(slice, "/"):
		return fmt.Errorf("slice %q has a slash: a slice inside another is written with dashes, as in user-1000.slice", slice)
	case !ok:
		return fmt.Errorf("slice %q does not end in %s", slice, sliceSuffix)
	case slice == rootSlice:
		return nil
	case stem == "":
		return fmt.Errorf("slice %q has no name", slice)
	case strings.HasPrefix(stem, "-"):
		return fmt.Errorf("slice %q begins with a dash", slice)
	case strings.HasSuffix(stem, "-"):
		return fmt.Errorf("slice %q has a dash before %s", slice, sliceSuffix)
	case strings.Contains(stem, "--"):
		return fmt.Errorf("slice %q has two dashes in a row", slice)
	case strings.Contains(stem, "@"):
		return fmt.Errorf("slice %q has an @: slices have no instances", slice)
	}
	return checkName(slice)
}

// SlicePath is where the cgroup of a slice is, below systemd's root: that of
// a-b.slice is /a.slice/a-b.slice, and that of the root slice is /.
func SlicePath(slice string) (string, error) {
	if err := checkSlice(slice); err != nil {
		return "", err
	}
	if slice == rootSlice {
		return "/", nil
	}
	stem := strings.TrimSuffix(slice, sliceSuffix)
	path := ""
	for i := 0; i <= len(stem); i++ {
		if i == len(stem) || stem[i] == '-' {
			path += "/" + cgroupName(stem[:i]+sliceSuffix)
		}
	}
	return path, nil
}

// cgroupName is the name of the directory of a unit. systemd puts "_" before
// names that the kernel's own files could have (cg_escape); of the names that a
// slice or scope can have, those are the ones that begin with it, and with the
// name of a controller and a dot.
func cgroupName(unit string) string {
	if strings.HasPrefix(unit, "_") || strings.HasPrefix(unit, ".") {
		return "_" + unit
	}
	prefix, _, _ := strings.Cut(unit, ".")
	switch prefix {
	case "cgroup", "cpu", "cpuacct", "cpuset", "io", "blkio", "memory", "devices", "pids",
		// What systemd has programs for counts as a controller too (cgroup_controller_to_string).
		"bpf-firewall", "bpf-devices", "bpf-foreign", "bpf-socket-bind", "bpf-restrict-network-interfaces":
		return "_" + unit
	}
	return unit
}

// SliceName gives the slice for a cgroup path in the notation of the cgroupfs
// driver: /foo/bar is foo-bar.slice, and a dash inside a name is written \x2d.
// A name that is escaped already is refused, for it would come out as another.
func SliceName(path string) (string, error) {
	if !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("cgroup path %q is not absolute", path)
	}
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		switch {
		case part == "" || part == ".":
			continue
		case part == "..":
			return "", fmt.Errorf("cgroup path %q has a .. in it", path)
		case strings.Contains(part, `\x`):
			return "", fmt.Errorf("cgroup path %q: %q is escaped already", path, part)
		case strings.HasSuffix(part, sliceSuffix):
			return "", fmt.Errorf("cgroup path %q: %q is the name of a slice already", path, part)
		}
		parts = append(parts, Escape(part))
	}
	if len(parts) == 0 {
		return rootSlice, nil
	}
	slice := strings.Join(parts, "-") + sliceSuffix
	return slice, checkSlice(slice)
}

// SlicePathName undoes SliceName: foo-bar.slice is /foo/bar.
func SlicePathName(slice string) (string, error) {
	if err := checkSlice(slice); err != nil {
		return "", err
	}
	if slice == rootSlice {
		return "/", nil
	}
	path := ""
	for part := range strings.SplitSeq(strings.TrimSuffix(slice, sliceSuffix), "-") {
		name, err := Unescape(part)
		if err != nil {
			return "", err
		}
		if strings.Contains(name, "/") {
			return "", fmt.Errorf("slice %q: %q has a slash in it", slice, name)
		}
		path += "/" + name
	}
	return path, nil
}
