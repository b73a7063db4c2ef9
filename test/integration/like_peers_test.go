package integration

import (
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// What clients branch on is as with runc and crun, which these statuses and words were taken from.
func TestExecFailsAsClientsExpect(t *testing.T) {
	b := harness.New(t)
	b.Berth("exec", "nobody", "/bin/true").FailsWith(t, 255, "container does not exist")
	c := b.Container("/inside", "hang").RunDetached()
	c.Exec([]string{"--cgroup", "notthere"}, "/bin/true").FailsWith(t, 255, "no such file or directory")
	c.Exec([]string{"--cap", "NOPE"}, "/bin/true").OK(t).Warns(t, "NOPE")
	c.Exec([]string{"--user", "nobodyknows"}, "/bin/true").FailsWith(t, 255, "nobodyknows")
	c.Kill("KILL").WaitExit()
	c.Exec([]string{"--user", "nobodyknows"}, "/bin/true").FailsWith(t, 255, "cannot exec in a stopped container")
}

// The directory of the process itself is there only once the process is in the container's pid
// namespace.
func TestExecInItsOwnDirectory(t *testing.T) {
	b := harness.New(t)
	for name, change := range map[string]func(*specs.Spec){
		"plain":  func(*specs.Spec) {},
		"filter": func(s *specs.Spec) { s.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow} },
	} {
		t.Run(name, func(t *testing.T) {
			c := b.Container("/inside", "hang")
			change(c.Spec)
			c.RunDetached()
			r := c.Exec([]string{"--cwd", "/proc/self"}, "/bin/sh", "-c", "cat comm; pwd -P; echo $$").OK(t)
			if got := r.Lines(); len(got) != 3 || got[0] != "sh" || got[1] != "/proc/"+got[2] {
				t.Errorf("it is in %q", got)
			}
			c.Exec([]string{"--cwd", "/proc/self/fd/0"}, "/bin/true").FailsWith(t, 255, "/cwd") // leads out of procfs
			c.Exec([]string{"--cwd", "/proc/self/root"}, "/bin/true").FailsWith(t, 255, "/cwd")
		})
	}
}

// A container at its limit of processes takes no further one, and says which limit that is.
func TestExecAtTheLimitOfProcesses(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "pids")
	c := b.Container("/inside", "hang").RunDetached()
	update(c, "--pids-limit", "1").OK(t)
	c.Exec(nil, "/bin/true").FailsWith(t, 255, "resource temporarily unavailable", "pids.limit")
	update(c, "--pids-limit", "100").OK(t)
	c.Exec(nil, "/bin/true").OK(t)
}

// An update that changes nothing is none, where there is something that it could change.
func TestUpdateOfNothing(t *testing.T) {
	b := harness.New(t)
	b.Berth("update", "nobody").FailsWith(t, 1, "container does not exist")
	c := b.Container("/inside", "hang").RunDetached()
	update(c, "--pids-limit", "20").OK(t)
	update(c).OK(t)
	if got := strings.TrimSpace(c.CgroupFile("pids", "pids.max", "pids.max")); got != "20" {
		t.Errorf("the limit is %s", got)
	}
}

// What runc and crun pass over is a warning, and of no effect.
func TestConfigEntriesOfNoEffect(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "look", "/dev/twice")
	c.Spec.Linux.UIDMappings = []specs.LinuxIDMapping{{HostID: 1000, Size: 1}}
	c.Spec.Linux.Personality = &specs.LinuxPersonality{Domain: specs.PerLinux, Flags: []specs.LinuxPersonalityFlag{"ADDR_NO_RANDOMIZE"}}
	c.Spec.Linux.Devices = []specs.LinuxDevice{
		{Path: "/dev/twice", Type: "c", Major: 1, Minor: 3}, {Path: "/dev/twice", Type: "c", Major: 1, Minor: 5},
	}
	r := c.Run().OK(t)
	for _, entry := range []string{"/linux/uidMappings", "/linux/personality/flags", "/linux/devices/1/path"} {
		r.Warns(t, entry)
	}
	v := harness.ParseView(t, r.Stdout)
	if f := v.Files["/dev/twice"]; f.Type != "char" || f.Major != 1 || f.Minor != 3 {
		t.Errorf("the device is %+v", f)
	}
	if v.Status["Uid"] != "0 0 0 0" {
		t.Errorf("uid %s", v.Status["Uid"])
	}
}

// The host's /dev/ptmx makes terminals in the host's devpts: it is no stand-in for the container's
// own.
func TestOrdinaryUserTerminalsWithPtmxListed(t *testing.T) {
	b := harness.New(t)
	c := b.AsOrdinaryUser(t, 0).Container("/bin/readlink", "/dev/ptmx")
	c.Spec.Linux.Devices = []specs.LinuxDevice{{Path: "/dev/ptmx", Type: "c", Major: 5, Minor: 2}}
	if got := c.Run().OK(t).Stdout; got != "pts/ptmx\n" {
		t.Errorf("/dev/ptmx leads to %q", got)
	}
}
