package spec

import (
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// intelRdt checks what is to be written to resctrl: lines of its schemata
// file, and closID one directory in its root.
func (c *checker) intelRdt(p place, rdt *specs.LinuxIntelRdt) {
	switch id := rdt.ClosID; {
	case id == "" || id == "/": // the container's own class, and the default class
	case id == "." || id == ".." || strings.ContainsAny(id, "/\n\x00") || len(id) > 255:
		c.bad(p.at("closID"), `expected a directory name, or "/" for the default class, found `+quote(id))
	case id == "info" || id == "mon_data" || id == "mon_groups":
		c.bad(p.at("closID"), quote(id)+" is a directory of resctrl itself")
	}
	// Several lines are discouraged, but have a meaning (config-linux.md, intelRdt).
	if s := rdt.L3CacheSchema; c.text(p.at("l3CacheSchema"), s) && s != "" {
		if !strings.HasPrefix(s, "L3:") {
			c.warn(p.at("l3CacheSchema"), "should start with L3:")
		}
		if strings.Contains(s, "\n") {
			c.warn(p.at("l3CacheSchema"), "should be one line; schemata takes several")
		}
	}
	if c.line(p.at("memBwSchema"), rdt.MemBwSchema) && rdt.MemBwSchema != "" && !strings.HasPrefix(rdt.MemBwSchema, "MB:") {
		c.bad(p.at("memBwSchema"), "must start with MB:, found "+quote(rdt.MemBwSchema))
	}
	lines := p.at("schemata")
	for i, line := range rdt.Schemata {
		c.line(lines.nth(i), line)
	}
}
