package spec

import (
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// memoryPolicy checks what set_mempolicy(2) would answer with EINVAL.
func (c *checker) memoryPolicy(p place, policy *specs.LinuxMemoryPolicy) {
	nodes := strings.TrimSpace(policy.Nodes)
	c.cpuList(p.at("nodes"), nodes)
	switch mode := policy.Mode; mode {
	case specs.MpolDefault, specs.MpolLocal:
		if nodes != "" {
			c.bad(p.at("nodes"), "must be empty for "+string(mode))
		}
	case specs.MpolBind, specs.MpolInterleave, specs.MpolWeightedInterleave, specs.MpolPreferredMany:
		if nodes == "" {
			c.bad(p.at("nodes"), "is empty, "+string(mode)+" needs at least one node")
		}
	case specs.MpolPreferred: // without nodes it prefers the local one
	default:
		c.bad(p.at("mode"), "unknown mode "+quote(string(mode))+", "+
			oneOf("MPOL_DEFAULT", "MPOL_BIND", "MPOL_INTERLEAVE", "MPOL_WEIGHTED_INTERLEAVE", "MPOL_PREFERRED",
				"MPOL_PREFERRED_MANY", "MPOL_LOCAL"))
		return
	}
	c.memoryFlags(p.at("flags"), policy, nodes != "")
}

func (c *checker) memoryFlags(list place, policy *specs.LinuxMemoryPolicy, nodes bool) {
	for i, flag := range policy.Flags {
		p := list.nth(i)
		switch flag {
		case specs.MpolFNumaBalancing:
			if policy.Mode != specs.MpolBind && policy.Mode != specs.MpolPreferredMany {
				c.bad(p, string(flag)+" is for MPOL_BIND and MPOL_PREFERRED_MANY only")
			}
		case specs.MpolFStaticNodes, specs.MpolFRelativeNodes:
			switch {
			case flag == specs.MpolFRelativeNodes && slices.Contains(policy.Flags, specs.MpolFStaticNodes):
				c.bad(p, "MPOL_F_RELATIVE_NODES and MPOL_F_STATIC_NODES exclude each other")
			case policy.Mode == specs.MpolLocal || policy.Mode == specs.MpolPreferred && !nodes:
				c.bad(p, string(flag)+" needs nodes")
			}
		default:
			c.bad(p, "unknown flag "+quote(string(flag))+", "+
				oneOf("MPOL_F_NUMA_BALANCING", "MPOL_F_RELATIVE_NODES", "MPOL_F_STATIC_NODES"))
		}
	}
}
