package unit

import (
	"fmt"
	"path"
	"strings"
)

// Place is the unit of a container.
type Place struct {
	// Slice is the slice around the unit.
	Slice string
	// Unit is its name, a scope or a slice.
	Unit string
}

// Resolve gives the unit by the spec's cgroupsPath in the systemd driver's
// notation, slice:prefix:name. rootlessV2 is set for a container of an ordinary
// user on cgroup v2, whose units go to user.slice where the config names none.
func Resolve(cgroupsPath, id string, rootlessV2 bool) (Place, error) {
	p, err := resolve(cgroupsPath, id, rootlessV2)
	if err != nil {
		return Place{}, fmt.Errorf("cgroupsPath %q: %w", cgroupsPath, err)
	}
	return p, nil
}

func resolve(cgroupsPath, id string, rootlessV2 bool) (Place, error) {
	if cgroupsPath == "" {
		cgroupsPath = ":berth:" + id
	}
	parts := strings.Split(cgroupsPath, ":")
	if len(parts) != 3 {
		hint := ""
		if strings.HasPrefix(cgroupsPath, "/") {
			hint = "; a path is for the cgroupfs driver"
		}
		return Place{}, fmt.Errorf("the systemd driver needs slice:prefix:name%s", hint)
	}
	slice, prefix, name := parts[0], parts[1], parts[2]
	switch {
	case slice == "" && rootlessV2:
		slice = "user.slice"
	case slice == "":
		slice = "system.slice"
	case slice == "-":
		slice = rootSlice
	}
	if err := checkSlice(slice); err != nil {
		return Place{}, err
	}
	if name == "" {
		return Place{}, fmt.Errorf("the name, its third part, is empty")
	}
	if strings.HasSuffix(name, sliceSuffix) {
		// The prefix is passed over. systemd places a slice by its name
		// alone, wherever it is asked for.
		if name == rootSlice {
			return Place{}, fmt.Errorf("the root slice cannot be a container")
		}
		return Place{Slice: slice, Unit: name}, checkSlice(name)
	}
	// A container's id may have a +, which a unit's name may not.
	unit := escapeForeign(prefix) + "-" + escapeForeign(name) + scopeSuffix
	return Place{Slice: slice, Unit: unit}, checkName(unit)
}

// Below gives the scope for a relative path in the notation of the cgroupfs driver, below a parent
// in the same notation: with the prefix berth, a/b below /machine is berth-b.scope in
// machine-a.slice.
func Below(parent, prefix, relative string) (Place, error) {
	whole := path.Join(parent, path.Clean("/"+relative))
	name := path.Base(whole)
	if path.Clean("/"+relative) == "/" {
		return Place{}, fmt.Errorf("cgroup path %q names no cgroup", relative)
	}
	slice, err := SliceName(path.Dir(whole))
	if err != nil {
		return Place{}, err
	}
	if strings.HasSuffix(name, sliceSuffix) || strings.HasSuffix(name, scopeSuffix) {
		return Place{}, fmt.Errorf("cgroup path %q: %q is the name of a unit already; the systemd driver's notation is slice:prefix:name", relative, name)
	}
	scope := prefix + "-" + escapeForeign(name) + scopeSuffix
	return Place{Slice: slice, Unit: scope}, checkName(scope)
}

// IsSlice says whether the unit is a slice and not a scope.
func (p Place) IsSlice() bool { return strings.HasSuffix(p.Unit, sliceSuffix) }

// Path is where the unit's cgroup is, below the cgroup of the systemd that
// manages it: / for the system's, /user.slice/user-UID.slice/user@UID.service
// for a user's.
func (p Place) Path() (string, error) {
	if p.IsSlice() {
		return SlicePath(p.Unit)
	}
	slice, err := SlicePath(p.Slice)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(slice, "/") + "/" + cgroupName(p.Unit), nil
}
