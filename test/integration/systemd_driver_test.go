package integration

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// A limit that the kernel refuses, which systemd only logs, is an error that names its entry;
// nothing is left.
func TestUnitRefusedLimits(t *testing.T) {
	b := withSystemd(t)
	needV2(t)
	for pointer, set := range map[string]func(*specs.LinuxResources){
		"/linux/resources/cpu/cpus": func(r *specs.LinuxResources) { r.CPU = &specs.LinuxCPU{Cpus: "1000"} },
		"/linux/resources/cpu/mems": func(r *specs.LinuxResources) { r.CPU = &specs.LinuxCPU{Mems: "60"} },
		"/linux/resources/unified/io.max": func(r *specs.LinuxResources) {
			r.Unified = map[string]string{"io.max": "250:77 rbps=5000"}
		},
	} {
		c, unit := unitContainer(b, "/bin/true")
		set(c.Spec.Linux.Resources)
		if r := c.Run(); r.Code == 0 || !strings.Contains(r.Stderr, "config.json: "+pointer+": ") {
			t.Errorf("%s: %d %s", pointer, r.Code, r.Stderr)
		}
		gone(t, unit)
	}
	c, unit := unitContainer(b, "/inside", "hang")
	c.RunDetached()
	before := unitFile(t, unit, "cpuset", "cpuset.cpus", "cpuset.cpus")
	c.Command("update", []string{"--cpuset-cpus", "1000"}).Run().Fails(t, "--cpuset-cpus: ")
	if got := unitFile(t, unit, "cpuset", "cpuset.cpus", "cpuset.cpus"); got != before {
		t.Errorf("after an update that was refused cpuset.cpus is %q, and was %q", got, before)
	}
}

// A period holds without a quota, of which systemd knows nothing.
func TestUnitPeriodAlone(t *testing.T) {
	b := withSystemd(t)
	needV2(t)
	c, unit := unitContainer(b, "/inside", "hang")
	c.Spec.Linux.Resources.CPU = &specs.LinuxCPU{Period: ptr(uint64(200000))}
	c.RunDetached()
	if got := unitFile(t, unit, "cpu", "", "cpu.max"); got != "max 200000" {
		t.Errorf("cpu.max is %q", got)
	}
}

// A frozen cgroup at the unit's place, or above it, is refused: the container would never go on.
func TestUnitFrozenPlace(t *testing.T) {
	b := systemdAsRoot(t)
	needV2(t)
	c, unit := unitContainer(b, "/bin/true")
	c.Spec.Linux.CgroupsPath = "system.slice:berth:" + c.ID
	dir := filepath.Join("/sys/fs/cgroup/system.slice", unit)
	must(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() { must(t, os.Remove(dir)) })
	must(t, os.WriteFile(dir+"/cgroup.freeze", []byte("1"), 0))
	if r := c.Run(); r.Code == 0 || !strings.Contains(r.Stderr, "frozen") {
		t.Errorf("%d %s", r.Code, r.Stderr)
	}
}

// Of a paused container that is killed, delete leaves no unit, frozen or failed.
func TestUnitPausedAndKilled(t *testing.T) {
	b := withSystemd(t)
	needV2(t)
	c, unit := unitContainer(b, "/inside", "hang")
	c.RunDetached()
	c.Command("pause", nil).Run().OK(t)
	must(t, unix.Kill(c.PID, unix.SIGKILL))
	c.WaitExit()
	c.Delete()
	gone(t, unit)
}

// systemd removes the cgroup of a container that has ended: ps shows nobody, and kill -a has nobody
// to miss.
func TestUnitEndedIsEmpty(t *testing.T) {
	b := withSystemd(t)
	c, unit := unitContainer(b, "/inside", "hang")
	c.RunDetached()
	c.Kill("KILL").WaitExit()
	wait.Until(t, "the unit is not active any more", func() bool { return property(t, unit, "ActiveState") != "active" })
	if r := c.Command("ps", []string{"--format", "json"}).Run().OK(t); strings.TrimSpace(r.Stdout) != "[]" {
		t.Errorf("ps shows %q", r.Stdout)
	}
	c.Command("kill", []string{"-a"}, "TERM").Run().OK(t)
	c.Delete()
	gone(t, unit)
}

// While systemd is executed anew, containers are started a little later.
func TestUnitDuringReexec(t *testing.T) {
	b := systemdAsRoot(t)
	reexec := exec.Command("systemctl", "daemon-reexec")
	must(t, reexec.Start())
	for range 4 {
		c, unit := unitContainer(b, "/bin/true")
		if r := c.Run(); r.Code != 0 {
			t.Errorf("%d %s", r.Code, r.Stderr)
		}
		gone(t, unit)
	}
	must(t, reexec.Wait())
}

// Without a cgroup namespace the path of /proc/self/cgroup is one below /sys/fs/cgroup, and may be
// written to, where the rest of the tree may not.
func TestUnitWholeTree(t *testing.T) {
	b := systemdAsRoot(t)
	needV2(t)
	c, _ := unitContainer(b, "/bin/sh", "-c", `own=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)
		cat $own/cgroup.procs > /dev/null && echo shown
		mkdir $own/below && rmdir $own/below && echo own
		mkdir /sys/fs/cgroup/outside || echo kept`)
	var namespaces []specs.LinuxNamespace
	for _, n := range c.Spec.Linux.Namespaces {
		if n.Type != specs.CgroupNamespace {
			namespaces = append(namespaces, n)
		}
	}
	c.Spec.Linux.Namespaces = namespaces
	c.Spec.Mounts = append(c.Spec.Mounts, specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"rw", "nosuid", "noexec", "nodev"}})
	if r := c.Run(); r.Stdout != "shown\nown\nkept\n" {
		t.Errorf("%d %q %s", r.Code, r.Stdout, r.Stderr)
	}
}

// A created container takes processes, and systemd ends it like any other: its init does not
// ignore the SIGTERM, after which systemd would wait for as long as the unit says.
func TestUnitCreated(t *testing.T) {
	b := withSystemd(t)
	if os.Geteuid() != 0 {
		needV2(t)
	}
	c, unit := unitContainer(b, "/inside", "hang")
	c.Spec.Annotations = map[string]string{"org.systemd.property.TimeoutStopUSec": "uint64 18446744073709551615"}
	c.Create()
	if r := c.Exec(nil, "/bin/echo", "added").OK(t); r.Stdout != "added\n" {
		t.Errorf("%q", r.Stdout)
	}
	if got := property(t, unit, "TimeoutStopUSec"); got != "infinity" {
		t.Errorf("TimeoutStopUSec=%s", got)
	}
	ctx, cancel := context.WithTimeout(context.Background(), harness.Deadline)
	defer cancel()
	args := []string{"stop", unit}
	if os.Geteuid() != 0 {
		args = append([]string{"--user"}, args...)
	}
	if out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput(); err != nil {
		t.Errorf("systemctl stop: %v: %s", err, out)
	}
	c.WaitExit()
	if got := c.State().Status; got != "stopped" {
		t.Errorf("it is %s", got)
	}
	c.Delete()
	gone(t, unit)
}
