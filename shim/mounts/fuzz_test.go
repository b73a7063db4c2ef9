package mounts

import "testing"

// The options of a mount request are the client's words: read or refused.
func FuzzOptions(f *testing.F) {
	for _, seed := range []string{"", "ro", "rbind", "lowerdir=a:b", "upperdir=u", "X-mount.idmap=u:0:1000:1", "uidmap=0:1000:65536,1:2:3", "0:1000:65536,1:2:3", "0:0:0", "loop", "=", "lowerdir=", "X-containerd.vhd",
		"gidmap=0:1:2", "nosuid", "atime", "rprivate", "uidmap=0:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, option string) {
		_, _ = parseOptions([]string{option})
		maps, err := parseIDMap(option)
		if err != nil {
			return
		}
		for _, m := range maps {
			if m.Size <= 0 || m.ContainerID < 0 || m.HostID < 0 {
				t.Errorf("%q was read as %+v", option, m)
			}
		}
	})
}
