package cgrouptool

import (
	"slices"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/cgroup/ledger"
)

// Copied returns what one group has otherwise than another, as set takes it: NAME=VALUE of fields
// and files. What the other has for a device that this one says nothing about is not in it.
func (t *Tools) Copied(from, to *cgroup.Group) ([]string, error) {
	var settings []string
	add := func(name, text string) { settings = append(settings, name+"="+text) }
	files, err := t.limitFiles(from)
	if err != nil {
		return nil, err
	}
	for _, e := range ledger.Table() {
		name := fieldName(e.Field)
		switch name {
		case "memory.kernel", "memory.useHierarchy", "memory.checkBeforeUpdate":
			continue // the kernel takes no value for them any more
		}
		if name, list, _ := strings.Cut(name, ".*"); !strings.HasPrefix(name, "unified") && name != "hugepageLimits" {
			theirs, own := t.held(from, name), t.held(to, name)
			for _, line := range missing(theirs, own) {
				switch {
				case name == "devices":
					add(name, "deny a, "+theirs)
				case name == "network.priorities" || name == "rdma":
					item, value, _ := strings.Cut(line, " ")
					add(name+"."+item+list, value)
				default:
					add(name, line)
				}
			}
		}
	}
	for _, file := range files {
		for _, line := range missing(t.held(from, file), t.held(to, file)) {
			add(file, line)
		}
	}
	return settings, nil
}

// limitFiles are the group's files that no field of the resources is for.
func (t *Tools) limitFiles(g *cgroup.Group) ([]string, error) {
	values, err := t.GetAll(g, []string{"hugetlb"})
	var files []string
	for _, v := range values {
		if strings.HasSuffix(v.Name, ".limit_in_bytes") || strings.HasSuffix(v.Name, ".max") {
			files = append(files, v.Name)
		}
	}
	var ofFields []string // the table has the fields before the files that are reached through "unified"
	for _, e := range ledger.Table() {
		if name, unified := strings.CutPrefix(e.Field, "/unified/"); !unified {
			ofFields = append(ofFields, e.V2.Files...)
		} else if !slices.Contains(ofFields, name) {
			files = append(files, name)
		}
	}
	return files, err
}

// held is what a group holds of a field or a file; "" where the host has none.
func (t *Tools) held(g *cgroup.Group, name string) string {
	values, err := t.Get(g, []string{name})
	if err != nil {
		return ""
	}
	return values[0].Text
}

// missing lists the lines of a text that another has not.
func missing(text, other string) (lines []string) {
	have := strings.Split(other, "\n")
	for line := range strings.SplitSeq(text, "\n") {
		if line != "" && !slices.Contains(have, line) {
			lines = append(lines, line)
		}
	}
	return lines
}
