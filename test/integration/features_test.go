package integration

import (
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"github.com/opencontainers/runtime-spec/specs-go/features"

	"github.com/berth-runtime/berth/test/harness"
)

// What CRI-O, Docker and Podman look for.
func TestFeatures(t *testing.T) {
	b := harness.New(t)
	var f features.Features
	harness.Decode(t, b.Berth("features").OK(t).Stdout, &f)
	if f.OCIVersionMin == "" || f.OCIVersionMax < f.OCIVersionMin {
		t.Errorf("versions %q to %q", f.OCIVersionMin, f.OCIVersionMax)
	}
	if len(f.Hooks) != 6 || !slices.Contains(f.MountOptions, "rro") || !slices.Contains(f.MountOptions, "tmpcopyup") {
		t.Errorf("hooks %q, mount options %q", f.Hooks, f.MountOptions)
	}
	l := f.Linux
	if l == nil || len(l.Namespaces) < 7 || len(l.Capabilities) < 41 || !*l.Cgroup.V1 || !*l.Cgroup.V2 || !*l.Seccomp.Enabled || !*l.MountExtensions.IDMap.Enabled {
		t.Errorf("linux %+v", l)
	}
	if !slices.Contains(l.Seccomp.Actions, "SCMP_ACT_NOTIFY") || !slices.Contains(l.Seccomp.Archs, string(specs.ArchX86_64)) || len(l.Seccomp.SupportedFlags) == 0 {
		t.Errorf("seccomp %+v", l.Seccomp)
	}
	for _, ours := range []string{"org.systemd.property.", "run.berth.landlock.", "run.berth.machined", "run.oci.systemd.subgroup"} {
		if !slices.Contains(f.PotentiallyUnsafeConfigAnnotations, ours) {
			t.Errorf("annotations %q: without %s", f.PotentiallyUnsafeConfigAnnotations, ours)
		}
	}
	b.Berth("features", "surplus").Exits(t, 1)
}

// Each mount option of the list is taken: none reaches the file system, which would refuse it.
func TestFeaturesMountOptions(t *testing.T) {
	b := harness.New(t)
	var f features.Features
	harness.Decode(t, b.Berth("features").OK(t).Stdout, &f)
	for _, word := range []string{"async", "bind", "defaults", "dev", "exec", "idmap", "noatime", "nodev", "noexec", "nosuid", "private", "rbind", "relatime", "remount", "ro", "rro", "rshared", "rslave",
		"runbindable", "rw", "suid", "sync", "tmpcopyup"} { // config.md, "Linux mount options", among others
		if !slices.Contains(f.MountOptions, word) {
			t.Errorf("%q is not in the list: %q", word, f.MountOptions)
		}
	}
	c := b.Container("/bin/true")
	for _, word := range f.MountOptions {
		switch word {
		case "bind", "rbind", "remount", "idmap", "ridmap": // no option of a file system's mount
			continue
		}
		c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/tmp/" + word, Type: "tmpfs", Source: "tmpfs", Options: []string{word}})
	}
	c.Run().OK(t)
}
