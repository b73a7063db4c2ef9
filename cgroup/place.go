package cgroup

import (
	"fmt"
	"strings"
)

// place is where the cgroupfs driver puts groups whose config names no path.
const place = "/berth"

// ResolvePath gives a container's group by the spec's cgroupsPath for the
// cgroupfs driver. The spec wants the same path to mean the same place always.
//
//   - Absolute: below the mount points of the hierarchies.
//   - Relative: below Base, which does not depend on the caller's own group on
//     an ordinary host. (runc takes the caller's group there, or its parent,
//     so that the same config lands elsewhere from another shell; crun takes the root.)
//   - Empty: Base, then /berth, then the container's id.
func (h *Host) ResolvePath(cgroupsPath, id string) (string, error) {
	if strings.HasPrefix(cgroupsPath, "/") {
		return cleanPath(cgroupsPath)
	}
	if strings.Count(cgroupsPath, ":") == 2 {
		return "", fmt.Errorf("cgroupsPath %q has the systemd driver's form slice:prefix:name, which needs --systemd-cgroup", cgroupsPath)
	}
	if cgroupsPath == "" {
		cgroupsPath = place[1:] + "/" + escapeName(id)
	}
	base, err := h.Base()
	if err != nil {
		return "", err
	}
	return cleanPath(base + "/" + cgroupsPath)
}

// Base is where this process may have groups of its own. A program in a service or
// scope with Delegate=yes has that unit's group, as the delegation wants it: what it
// makes elsewhere would be outside of its limits, and of its end. (A group that is another
// user's, or below one, was not delegated to root: that user can mark any group of theirs, and have
// root's program be in it, by sudo.) Otherwise it is the
// root of the mounts, for root; for an ordinary user on version 2 it is the innermost
// delegated group around its own process, which may be the scope or service that it
// runs in; where there is none it is the root again, and Create will say that it is
// not permitted.
func (h *Host) Base() (string, error) {
	home := h.unitHome()
	privileged := h.privileged()
	if home == nil || home.Version == 1 && !privileged {
		return "/", nil
	}
	list, err := h.memberships(0)
	if err != nil {
		return "", err
	}
	for _, m := range list {
		if !m.in(home) || m.deleted {
			continue
		}
		own, err := home.within(m.path)
		if err != nil {
			return "/", nil
		}
		n := node{Hierarchy: home, path: own, fd: -1}
		_, unitPath := unitOf(own)
		for at := own; at != "/"; at = parentOf(at) {
			if privileged && unitPath == "" {
				break // only a unit's manager delegates to root
			}
			if h.isDelegated(&n, at) || at == unitPath && h.isOwnUnit(&n, at) {
				if privileged && !h.isMineUpwards(&n, at) {
					break // the one it is delegated to could freeze and kill what root has there
				}
				return at, nil
			}
			if privileged && at == unitPath {
				break // what is around it was delegated to the manager of the unit
			}
		}
	}
	return "/", nil
}

// unitHome is the hierarchy in which systemd has its units: version 2, else its own.
func (h *Host) unitHome() *Hierarchy {
	for i := range h.hierarchies {
		if h.hierarchies[i].Version == 2 {
			return &h.hierarchies[i]
		}
	}
	for i := range h.hierarchies {
		if h.hierarchies[i].Name == "systemd" {
			return &h.hierarchies[i]
		}
	}
	return nil
}
