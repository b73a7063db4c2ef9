package neighbour

import (
	"fmt"
	"slices"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// A shape is a config of the container that is attacked.
type shape struct {
	name string
	make func(s *specs.Spec)
	// rootless is set where an ordinary user calls the engine.
	rootless bool
}

// shapes differ in what can be gained: more rights by exec, by a hook, over the init, over devices,
// over ids.
var shapes = []shape{
	{name: "usual", make: func(*specs.Spec) {}},
	{name: "tracer", make: func(s *specs.Spec) { grant(s, "CAP_SYS_PTRACE") }},
	{name: "mounter", make: func(s *specs.Spec) { grant(s, "CAP_SYS_ADMIN") }},
	{name: "nobody", make: nobody},
	{name: "hooked", make: func(s *specs.Spec) {
		nobody(s)
		// Of the image, and so of all who can write there.
		s.Hooks = &specs.Hooks{StartContainer: []specs.Hook{{Path: "/inside", Args: []string{"inside", "try"}}}}
	}},
	{name: "mapped", make: func(s *specs.Spec) {
		harness.UserNamespace(s)
		s.Process.User.AdditionalGids = []uint32{7}
	}},
	{name: "delegated", make: func(s *specs.Spec) {
		s.Mounts = append(s.Mounts, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"nosuid", "noexec", "nodev", "rw"}})
	}},
	// Devices, links and the console are made in the image's own /dev, and /sys is the image's.
	{name: "bare", make: func(s *specs.Spec) {
		s.Mounts = slices.DeleteFunc(s.Mounts, func(m specs.Mount) bool {
			return strings.HasPrefix(m.Destination, "/dev") || m.Destination == "/sys"
		})
		s.Linux.Devices = []specs.LinuxDevice{{Path: "/opt/nodes/null", Type: "c", Major: 1, Minor: 3}}
		s.Root.Readonly = true
	}},
	// What an author of configs leaves out, or asks for, who may not run hooks.
	// In the pid namespace of a container that may trace, and in a cgroup below another one's.
	{name: "pod", make: func(s *specs.Spec) {
		for i := range s.Linux.Namespaces {
			if n := &s.Linux.Namespaces[i]; n.Type == specs.PIDNamespace {
				n.Path = podsPids
			}
		}
		s.Hooks = &specs.Hooks{StartContainer: []specs.Hook{{Path: "/inside", Args: []string{"inside", "try"}}}}
	}},
	{name: "lodger", make: func(s *specs.Spec) { s.Linux.CgroupsPath = canarysCgroup + "/lodger" }},
	{name: "deviceless", make: func(s *specs.Spec) { nobody(s); s.Linux.Resources = nil }},
	// In the host's pid namespace: its processes see all others, are seen by them, and do not end
	// with the first. It has no right over any but those of its own user.
	{name: hostPids, make: func(s *specs.Spec) {
		nobody(s)
		harness.WithoutNamespace(s, specs.PIDNamespace)
	}},
	// An ordinary user's, who has no cgroup here.
	{name: rootless, rootless: true, make: func(s *specs.Spec) {
		harness.Rootless(s)
		s.Linux.CgroupsPath, s.Linux.Resources = "", nil
	}},
}

// Shapes that acts and commands are chosen for.
const (
	hostPids = "hostpids"
	rootless = "rootless"
)

// podsPids and canarysCgroup stand for what the scene has.
const (
	podsPids      = "the pod's"
	canarysCgroup = "the canary's"
)

// someUser stands for the scene's user in a shape.
const someUser = 1

func nobody(s *specs.Spec) {
	s.Process.User = specs.User{UID: someUser, GID: someUser}
	s.Process.Capabilities = &specs.LinuxCapabilities{}
	s.Process.NoNewPrivileges = true
}

func grant(s *specs.Spec, capability string) {
	c := s.Process.Capabilities
	for _, set := range []*[]string{&c.Bounding, &c.Effective, &c.Permitted} {
		*set = append(slices.Clip(*set), capability)
	}
}

// config is a shape's config, with mounts, masks and a working directory whose names others can
// change meanwhile.
func (s *scene) config(sh shape) *specs.Spec {
	spec := harness.DefaultSpec("/"+s.target.ID, "/inside", "agent")
	spec.Process.Cwd = "/home/user"
	spec.Mounts = append(spec.Mounts,
		specs.Mount{Destination: "/srv/a", Type: "bind", Source: s.b.Path("volume"), Options: []string{"rbind", "rw"}},
		specs.Mount{Destination: "/srv/a/data", Type: "tmpfs", Source: "tmpfs", Options: []string{"size=64k"}},
		specs.Mount{Destination: "/var/cache", Type: "tmpfs", Source: "tmpfs", Options: []string{"nosuid", "nodev", "size=64k"}})
	spec.Linux.MaskedPaths = append(spec.Linux.MaskedPaths, "/etc/secret")
	spec.Linux.ReadonlyPaths = append(spec.Linux.ReadonlyPaths, "/etc/fixed")
	spec.Linux.Sysctl = map[string]string{"net.ipv4.ip_default_ttl": "63"}
	spec.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"acct"}, Action: specs.ActErrno}}}
	limit := int64(60)
	spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: &limit}
	sh.make(spec)
	if sh.rootless {
		spec.Linux.UIDMappings[0].HostID, spec.Linux.GIDMappings[0].HostID = uint32(s.caller()), uint32(s.caller())
	}
	if u := &spec.Process.User; u.UID == someUser {
		u.UID, u.GID = uint32(s.userID), uint32(s.userID)
	}
	for i := range spec.Linux.Namespaces {
		if n := &spec.Linux.Namespaces[i]; n.Path == podsPids {
			n.Path = fmt.Sprintf("/proc/%d/ns/pid", s.member)
		}
	}
	spec.Linux.CgroupsPath = strings.Replace(spec.Linux.CgroupsPath, canarysCgroup, s.canary.c.Spec.Linux.CgroupsPath, 1)
	return spec
}
