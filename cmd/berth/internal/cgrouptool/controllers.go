package cgrouptool

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
)

// Controller is where a controller lives, and where it acts.
type Controller struct {
	Name    string
	Enabled bool              // in the kernel: false with cgroup_disable=
	Home    *cgroup.Hierarchy // nil if it is not mounted
	ID      int               // of the hierarchy, as in /proc/self/cgroup; 0 is version 2
	// Groups is how many cgroups it acts on, the root included.
	Groups int
	// Enablers are the cgroups of version 2 that give it to their children.
	Enablers []string
}

// Controllers lists the kernel's controllers.
func (t *Tools) Controllers() ([]Controller, error) {
	text, err := os.ReadFile(t.root + "/proc/cgroups")
	if err != nil && !gone(err) {
		return nil, err
	}
	list := parseProcCgroups(string(text))
	for _, h := range t.Host.Hierarchies() {
		for _, name := range h.Controllers {
			i := slices.IndexFunc(list, func(c Controller) bool { return c.Name == name })
			if i < 0 {
				// Version 2 has controllers that version 1's list does not know: io is its blkio.
				if j := slices.IndexFunc(list, func(c Controller) bool { return name == "io" && c.Name == "blkio" }); j >= 0 {
					list[j].Name = name
					i = j
				} else {
					i = len(list)
					list = append(list, Controller{Name: name, Enabled: true})
				}
			}
			list[i].Home = h
		}
	}
	for _, h := range t.Host.Hierarchies() {
		if err := t.count(h, list); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// count finds out in one walk where the controllers of a hierarchy act.
func (t *Tools) count(h *cgroup.Hierarchy, list []Controller) error {
	return t.walk(h, "/", -1, func(path string) error {
		here, gives := h.Controllers, []string(nil)
		if h.Version == 2 {
			here, gives = t.words(h, path, "cgroup.controllers"), t.words(h, path, "cgroup.subtree_control")
		}
		for i := range list {
			c := &list[i]
			if c.Home != h {
				continue
			}
			if slices.Contains(here, c.Name) {
				c.Groups++
			}
			if slices.Contains(gives, c.Name) {
				c.Enablers = append(c.Enablers, path)
			}
		}
		return nil
	})
}

// words reads a file of a cgroup that has words in it; none if it is gone.
func (t *Tools) words(h *cgroup.Hierarchy, path, file string) []string {
	text, err := os.ReadFile(t.dir(h, path) + "/" + file)
	if err != nil {
		return nil
	}
	return strings.Fields(string(text))
}

// parseProcCgroups reads /proc/cgroups: "NAME HIERARCHY CGROUPS ENABLED" lines
// below a heading.
func parseProcCgroups(text string) []Controller {
	var list []Controller
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 4 || strings.HasPrefix(line, "#") {
			continue
		}
		id, err := strconv.Atoi(f[1])
		if err != nil {
			continue
		}
		list = append(list, Controller{Name: f[0], ID: id, Enabled: f[3] == "1"})
	}
	return list
}
