package integration

import (
	"os"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

// sharedVolume is a file system on the host that is shared, as systemd makes all of a host's
// mounts.
func sharedVolume(t *testing.T, b *harness.Box) string {
	t.Helper()
	volume := b.Path("volume")
	mountForTest(t, "tmpfs", volume, "tmpfs", "")
	if err := unix.Mount("", volume, "", unix.MS_SHARED, ""); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(volume+"/made", 0o755); err != nil {
		t.Fatal(err)
	}
	return volume
}

// hostHas reports whether something is mounted there, as the host sees it.
func hostHas(t *testing.T, path string) bool {
	t.Helper()
	return strings.Contains(readFile(t, "/proc/self/mountinfo"), " "+path+" ")
}

// CSI drivers mount volumes inside of their container, for all pods of the node: with a shared root
// and a shared bind mount that reaches the host, and the host's mounts reach the container. Nothing
// else does.
func TestMountsMadeInsideReachTheHost(t *testing.T) {
	for _, test := range []struct {
		root, volume string
		reaches      bool
	}{
		{"shared", "rshared", true}, {"rshared", "rshared", true}, {"rshared", "shared", true},
		{"shared", "rslave", false}, {"shared", "rprivate", false}, {"rslave", "rslave", false}, {"", "rprivate", false},
	} {
		t.Run(test.root+" "+test.volume, func(t *testing.T) {
			b := harness.New(t)
			volume := sharedVolume(t, b)
			c := b.Container("/bin/sleep", "100")
			c.Spec.Linux.RootfsPropagation = test.root
			for _, set := range []*[]string{&c.Spec.Process.Capabilities.Bounding, &c.Spec.Process.Capabilities.Effective, &c.Spec.Process.Capabilities.Permitted} {
				*set = append(slices.Clone(*set), "CAP_SYS_ADMIN")
			}
			c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/volume", Type: "bind", Source: volume, Options: []string{"rbind", test.volume}})
			if err := os.MkdirAll(c.Path("elsewhere"), 0o755); err != nil {
				t.Fatal(err)
			}
			c.RunDetached()
			tried := harness.ParseAttempts(t, c.Exec(nil, "/inside", "try", "mount=/volume/made,tmpfs", "mount=/elsewhere,tmpfs").OK(t).Stdout)
			harness.Allowed(t, tried, "mount=/volume/made,tmpfs", "mount=/elsewhere,tmpfs")
			if got := hostHas(t, volume+"/made"); got != test.reaches {
				t.Errorf("what was mounted inside is on the host: %v, want %v", got, test.reaches)
			} else if got {
				if err := unix.Unmount(volume+"/made", 0); err != nil {
					t.Error(err)
				}
				if v := harness.ParseView(t, c.Exec(nil, "/inside", "look").OK(t).Stdout); slices.ContainsFunc(v.Mounts, func(m view.Mount) bool { return m.Target == "/volume/made" }) {
					t.Error("what the host has unmounted is still mounted inside")
				}
			}
			if hostHas(t, c.Path("elsewhere")) {
				t.Error("what was mounted in the container's root is on the host")
			}
			c.Kill("KILL")
			c.WaitExit()
			c.Delete()
			if !hostHas(t, volume) {
				t.Error("the host's own mount is gone")
			}
		})
	}
}

// What is masked and made read-only on a bind mount of the host's is so for the container alone,
// also where a shared root lets what is mounted on binds reach the host.
func TestMasksOnABindStayInside(t *testing.T) {
	for _, root := range []string{"shared", "rshared"} {
		t.Run(root, func(t *testing.T) {
			b := harness.New(t)
			volume := sharedVolume(t, b)
			if err := os.WriteFile(volume+"/secret", []byte("secret"), 0o644); err != nil {
				t.Fatal(err)
			}
			c := b.Container("/bin/sleep", "100")
			c.Spec.Linux.RootfsPropagation = root
			c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/volume", Type: "bind", Source: volume, Options: []string{"rbind"}})
			c.Spec.Linux.MaskedPaths = append(c.Spec.Linux.MaskedPaths, "/volume/secret")
			c.Spec.Linux.ReadonlyPaths = append(c.Spec.Linux.ReadonlyPaths, "/volume/made")
			c.RunDetached()
			tried := harness.ParseAttempts(t, c.Exec(nil, "/inside", "try", "create=/volume/made/file", "create=/volume/file", "read=/volume/secret").OK(t).Stdout)
			harness.Refused(t, tried, "create=/volume/made/file", "EROFS")
			harness.Allowed(t, tried, "create=/volume/file")
			if got := tried["read=/volume/secret"].Result; got != "" {
				t.Errorf("what is masked reads %q", got)
			}
			for _, path := range []string{"/secret", "/made"} {
				if hostHas(t, volume+path) {
					t.Errorf("what is mounted on %s is on the host", path)
				}
			}
			// What the host mounts is still seen inside.
			mountForTest(t, "late", volume+"/late", "tmpfs", "")
			v := harness.ParseView(t, c.Exec(nil, "/inside", "look").OK(t).Stdout)
			if !slices.ContainsFunc(v.Mounts, func(m view.Mount) bool { return m.Target == "/volume/late" && m.Source == "late" }) {
				t.Error("what the host has mounted is not there")
			}
			c.Kill("KILL")
			c.WaitExit()
			c.Delete()
		})
	}
}
