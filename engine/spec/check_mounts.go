package spec

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// mounts checks the shape of the mounts. What their options mean is the plan's
// matter, except for id mapping, whose contradictions show here already.
func (c *checker) mounts(list place, mounts []specs.Mount, linux *specs.Linux) {
	if len(mounts) > 0 && !has(linux, specs.MountNamespace) {
		c.hint(list, "needs a mount namespace: the mounts would stay on the host", `add {"type": "mount"} to /linux/namespaces`)
	}
	for i := range mounts {
		p, m := list.nth(i), &mounts[i]
		if m.Destination == "" { // relative ones are deprecated, but legal: they start at the root
			c.bad(p.at("destination"), "is empty, expected a path in the container")
		}
		c.text(p.at("destination"), m.Destination)
		c.text(p.at("type"), m.Type)
		c.text(p.at("source"), m.Source)
		c.texts(p.at("options"), m.Options)
		c.mappedMount(p, m, linux)
	}
}

func (c *checker) mappedMount(p place, m *specs.Mount, linux *specs.Linux) {
	switch {
	case len(m.UIDMappings) > 0 && len(m.GIDMappings) == 0:
		c.bad(p.at("gidMappings"), "is required together with uidMappings")
	case len(m.UIDMappings) == 0 && len(m.GIDMappings) > 0:
		c.bad(p.at("uidMappings"), "is required together with gidMappings")
	case len(m.UIDMappings) == 0 && !has(linux, specs.UserNamespace):
		for _, option := range [2]string{"idmap", "ridmap"} {
			if i := slices.Index(m.Options, option); i >= 0 {
				options := p.at("options")
				c.bad(options.nth(i), option+" needs uidMappings and gidMappings, since the container has no user namespace to take them from")
			}
		}
	}
	c.mappings(p.at("uidMappings"), m.UIDMappings)
	c.mappings(p.at("gidMappings"), m.GIDMappings)
}
