package cgrouptool

import (
	"fmt"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
)

// Target is a cgroup as a command line names it.
type Target struct {
	// Controllers say in which hierarchies; nil is all of them.
	Controllers []string
	Path        string
}

// ParseTarget reads what cgroup-tools take with -g: "cpu,memory:/demo",
// "*:/demo" for every hierarchy, ":/demo" for version 2 whatever controllers it
// has. "name=systemd" is a named hierarchy, "unified" is version 2. Without
// controllers it is a path in every hierarchy.
func ParseTarget(text string) (Target, error) {
	list, path, found := strings.Cut(text, ":")
	if !found || strings.Contains(list, "/") {
		list, path = "*", text // a colon further on is part of a name
	}
	if path == "" {
		return Target{}, fmt.Errorf("%q names no cgroup: it is written as controllers:path, as in cpu,memory:/demo", text)
	}
	controllers, err := ParseControllers(list)
	return Target{Controllers: controllers, Path: path}, err
}

// ParseControllers reads a list of controllers; "*" is nil, all hierarchies.
func ParseControllers(list string) ([]string, error) {
	switch list {
	case "*":
		return nil, nil
	case "":
		return []string{"unified"}, nil
	}
	names := strings.Split(list, ",")
	for _, name := range names {
		if name == "" || strings.ContainsAny(name, "* \t\n") {
			return nil, fmt.Errorf("%q is not a list of controllers, as in cpu,memory", list)
		}
	}
	return names, nil
}

func (t Target) String() string {
	if t.Controllers == nil {
		return t.Path
	}
	return strings.Join(t.Controllers, ",") + ":" + t.Path
}

// homes turns controllers into what this host has for them, so that a command
// line written for one version works on the other: version 2 calls blkio io,
// counts time in cpu, and has the freezer, devices and perf events built in.
func homes(host *cgroup.Host, controllers []string) []string {
	var list []string
	for _, name := range controllers {
		if host.Controller(name) == nil && host.Unified() != nil {
			switch name {
			case "blkio":
				name = "io"
			case "cpuacct", "freezer", "devices", "perf_event":
				name = "unified"
			}
		} else if name == "io" && host.Controller("io") == nil {
			name = "blkio"
		}
		list = append(list, name)
	}
	return list
}
