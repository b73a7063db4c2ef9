package view

import (
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/caps"
	"github.com/berth-runtime/berth/seccomp"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/opencontainers/runtime-spec/specs-go/features"
)

// Features is what this build can do, whatever the host. Only the flags of
// seccomp are the kernel's, as the specification wants it.
func Features(annotations map[string]string) *features.Features {
	yes := true
	return &features.Features{
		OCIVersionMin: "1.0.0",
		OCIVersionMax: specs.Version,
		Hooks:         []string{"prestart", "createRuntime", "createContainer", "startContainer", "poststart", "poststop"},
		MountOptions:  plan.MountOptions(),
		Annotations:   annotations,
		// Those that become properties of the container's unit, and what of ours
		// changes what a container may do or where it is; all that is known is here.
		PotentiallyUnsafeConfigAnnotations: []string{"org.systemd.property.", spec.LandlockPrefix, spec.LearnAnnotation, spec.MachinedAnnotation, spec.SubgroupAnnotation},
		Linux: &features.Linux{
			Namespaces: []string{
				string(specs.CgroupNamespace), string(specs.IPCNamespace), string(specs.MountNamespace), string(specs.NetworkNamespace),
				string(specs.PIDNamespace), string(specs.TimeNamespace), string(specs.UserNamespace), string(specs.UTSNamespace),
			},
			Capabilities: caps.Set(1<<(caps.Last+1) - 1).Names(),
			Cgroup:       &features.Cgroup{V1: &yes, V2: &yes, Systemd: &yes, SystemdUser: &yes, Rdma: &yes},
			Seccomp:      seccomp.Supported(),
			Apparmor:     &features.Apparmor{Enabled: &yes},
			Selinux:      &features.Selinux{Enabled: &yes},
			IntelRdt:     &features.IntelRdt{Enabled: &yes, Schemata: &yes, Monitoring: &yes},
			MemoryPolicy: &features.MemoryPolicy{
				Modes: []string{
					string(specs.MpolDefault), string(specs.MpolBind), string(specs.MpolInterleave), string(specs.MpolWeightedInterleave),
					string(specs.MpolPreferred), string(specs.MpolPreferredMany), string(specs.MpolLocal),
				},
				Flags: []string{string(specs.MpolFNumaBalancing), string(specs.MpolFRelativeNodes), string(specs.MpolFStaticNodes)},
			},
			MountExtensions: &features.MountExtensions{IDMap: &features.IDMap{Enabled: &yes}},
			NetDevices:      &features.NetDevices{Enabled: &yes},
		},
	}
}
