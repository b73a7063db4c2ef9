package attacks

import (
	"path/filepath"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// fakeProc are the files that a runtime writes in what it takes for a procfs.
var fakeProc = map[string]string{
	"self/attr/exec": "kept", "self/attr/apparmor/exec": "kept", "self/attr/keycreate": "kept", "thread-self/attr/exec": "kept",
	"thread-self/attr/apparmor/exec": "kept", "sys/kernel/domainname": "kept", "sys/kernel/shm_rmid_forced": "kept",
	"self/oom_score_adj": "kept", "self/uid_map": "kept", "self/timens_offsets": "kept", "sysrq-trigger": "kept",
}

// CVE-2019-16884, CVE-2025-52881, CVE-2025-62596: with a volume on /proc, or on a part of it, what
// the runtime writes to procfs goes to files of the attacker: the label is not set, or the write is
// led to a file of the host's.
func TestVolumeOnProc(t *testing.T) {
	for place, part := range map[string]string{"/proc": "", "/proc/sys": "sys", "/proc/sys/kernel": "sys/kernel", "/proc/self": "self", "/proc/thread-self": "thread-self"} {
		t.Run(strings.ReplaceAll(place, "/", "-"), func(t *testing.T) {
			b := harness.New(t)
			o := newOutside(b, fakeProc)
			c := b.Container("/inside", "look")
			c.Spec.Mounts = append(c.Spec.Mounts, bind(place, filepath.Join(o.dir, part), "rbind"))
			c.Spec.Linux.MaskedPaths, c.Spec.Linux.ReadonlyPaths = nil, nil
			c.Spec.Linux.Sysctl = map[string]string{"kernel.domainname": "by.sysctl", "kernel.shm_rmid_forced": "1"}
			if r := c.Run(); r.Code != 0 {
				r.Fails(t) // /proc/self is a link, and may not be mounted on
			} else if v := harness.ParseView(t, r.Stdout); v.Domain != "by.sysctl" {
				t.Errorf("the domain name is %q: the parameter was not set in the kernel", v.Domain)
			}
			// A label that can't be set for real must be an error. This kernel may have the module,
			// but not this profile.
			for _, label := range []func(p *specs.Process){
				func(p *specs.Process) { p.ApparmorProfile, p.SelinuxLabel = "no-such-profile-of-berth", "" },
				func(p *specs.Process) { p.ApparmorProfile, p.SelinuxLabel = "", "no:such:label:s0" },
			} {
				label(c.Spec.Process)
				c.Run().Fails(t)
			}
			o.untouched()
			harness.Report(t, "attacks", 3)
		})
	}
}

// The write may also be led on by a link in the volume.
func TestVolumeOnProcLeadsOn(t *testing.T) {
	eachWay(t, "volume/kernel/domainname", map[string]string{"domainname": "kept"}, nil, func(t *testing.T, c *harness.Container, o *outside) {
		link(c, "volume/kernel/domainname", o.dir+"/domainname")
		c.Spec.Mounts = append(c.Spec.Mounts, bind("/proc/sys", c.Path("volume")))
		c.Spec.Linux.ReadonlyPaths = nil
		c.Spec.Linux.Sysctl = map[string]string{"kernel.domainname": "by.sysctl"}
		c.Spec.Process.Args = []string{"/inside", "look"}
		real := func() {
			if r := tryRun(t, c); r.Code == 0 {
				if v := harness.ParseView(t, r.Stdout); v.Domain != "by.sysctl" {
					t.Errorf("the domain name is %q", v.Domain)
				}
			}
		}
		real()
		// To where it also leads inside of the container.
		link(c, "volume/kernel/domainname", "../elsewhere")
		c.WriteFile("volume/elsewhere", "kept", 0o644)
		real()
	})
}

// CVE-2023-25809: without a cgroup namespace, a rootless or user-namespaced container saw, and
// could write to, more of the cgroup hierarchy than its own group.
func TestCgroupsOfOthers(t *testing.T) {
	harness.NeedNamespace(t, "user")
	b := harness.New(t)
	c := b.Container()
	harness.UserNamespace(c.Spec)
	harness.WithoutNamespace(c.Spec, specs.CgroupNamespace)
	c.Spec.Mounts = append(c.Spec.Mounts,
		specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"rw", "nosuid", "noexec", "nodev"}})
	c.Spec.Process.Args = []string{"/bin/sh", "-c", "find /sys/fs/cgroup -name cgroup.procs; find /sys/fs/cgroup -type d -exec mkdir {}/made \\; ; true"}
	r := c.Run().OK(t)
	for _, file := range r.Lines() {
		// DIR/cgroup.procs of one hierarchy, or DIR/HIERARCHY/cgroup.procs: nothing above or beside
		// its own group is there.
		if deep := strings.Count(strings.TrimPrefix(file, "/sys/fs/cgroup/"), "/"); deep > 1 {
			t.Errorf("the container sees %s", file)
		}
	}
	for _, h := range harness.Hierarchies(t) {
		if _, err := filepath.Glob(filepath.Join(h.Dir, "made")); err != nil {
			t.Error(err)
		}
		if found, _ := filepath.Glob(filepath.Join(h.Dir, "made")); len(found) > 0 {
			t.Errorf("the container has made %v", found)
		}
	}
	harness.Report(t, "attacks", 1)
}
