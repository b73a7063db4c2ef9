package harness

import (
	"os"
	"slices"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Rootless gives a config what it needs to be run by an ordinary user: a user namespace in which he
// is root, and nothing that takes other ids.
func Rootless(s *specs.Spec) {
	rootless(s, specs.LinuxIDMapping{HostID: uint32(os.Getuid()), Size: 1}, specs.LinuxIDMapping{HostID: uint32(os.Getgid()), Size: 1})
}

func rootless(s *specs.Spec, uid, gid specs.LinuxIDMapping) {
	s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.UserNamespace})
	s.Linux.UIDMappings, s.Linux.GIDMappings = []specs.LinuxIDMapping{uid}, []specs.LinuxIDMapping{gid}
	for i := range s.Mounts {
		m := &s.Mounts[i]
		m.Options = slices.DeleteFunc(slices.Clone(m.Options), func(option string) bool { return option == "gid=5" })
	}
}
