package harness

import (
	"os"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Rootless gives a config what it needs to be run by an ordinary user: a user namespace in which he is root, and
// nothing that takes other ids.
func Rootless(s *specs.Spec) {
	s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
	s.Linux.UIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: uint32(os.Getuid()), Size: 1}}
	s.Linux.GIDMappings = []specs.LinuxIDMapping{{ContainerID: 0, HostID: uint32(os.Getgid()), Size: 1}}
	for i := range s.Mounts {
		m := &s.Mounts[i]
		m.Options = slices.DeleteFunc(slices.Clone(m.Options), func(option string) bool { return option == "gid=5" })
	}
}
