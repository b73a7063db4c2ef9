package integration

import (
	"os"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// nsNames are the names of /proc/PID/ns by those of the config.
var nsNames = map[specs.LinuxNamespaceType]string{
	specs.PIDNamespace: "pid", specs.NetworkNamespace: "net", specs.MountNamespace: "mnt", specs.IPCNamespace: "ipc",
	specs.UTSNamespace: "uts", specs.UserNamespace: "user", specs.CgroupNamespace: "cgroup", specs.TimeNamespace: "time",
}

func TestAllNamespacesNew(t *testing.T) {
	b := harness.New(t)
	harness.NeedNamespace(t, "user")
	harness.NeedNamespace(t, "time")
	c := b.Container()
	harness.UserNamespace(c.Spec)
	c.Spec.Linux.Namespaces = append(c.Spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.TimeNamespace})
	v, host := c.Look(), processNamespaces(t, os.Getpid())
	for kind, name := range nsNames {
		if v.NS[name] == "" || v.NS[name] == host[name] {
			t.Errorf("%s namespace: %q inside, %q outside", kind, v.NS[name], host[name])
		}
	}
	if v.PID != 1 {
		t.Errorf("pid %d", v.PID)
	}
}

// Each namespace can be left out alone; the others stay new.
func TestNamespacesLeftOut(t *testing.T) {
	for _, kind := range []specs.LinuxNamespaceType{specs.PIDNamespace, specs.NetworkNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.CgroupNamespace} {
		t.Run(string(kind), func(t *testing.T) {
			b := harness.New(t)
			c := b.Container()
			harness.WithoutNamespace(c.Spec, kind)
			if kind == specs.UTSNamespace {
				c.Spec.Hostname = ""
			}
			v, host := c.Look(), processNamespaces(t, os.Getpid())
			for other, name := range nsNames {
				if other == specs.UserNamespace || other == specs.TimeNamespace {
					continue
				}
				if same := v.NS[name] == host[name]; same != (other == kind) {
					t.Errorf("without %s: %s namespace %s inside, %s outside", kind, other, v.NS[name], host[name])
				}
			}
		})
	}
}

func TestJoinNamespaces(t *testing.T) {
	for _, kind := range []specs.LinuxNamespaceType{specs.PIDNamespace, specs.NetworkNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.CgroupNamespace, specs.TimeNamespace} {
		t.Run(string(kind), func(t *testing.T) {
			harness.NeedNamespace(t, nsNames[kind])
			b := harness.New(t)
			owner := b.Container("/inside", "hang")
			if kind == specs.TimeNamespace {
				owner.Spec.Linux.Namespaces = append(owner.Spec.Linux.Namespaces, specs.LinuxNamespace{Type: kind})
			}
			owner.RunDetached()
			c := b.Container()
			harness.NamespacePath(c.Spec, kind, procPath(owner.PID, "ns/"+nsNames[kind]))
			if kind == specs.UTSNamespace {
				c.Spec.Hostname = ""
			}
			v, theirs := c.Look(), processNamespaces(t, owner.PID)
			for other, name := range nsNames {
				if other == specs.UserNamespace || other == specs.TimeNamespace && kind != other {
					continue
				}
				if same := v.NS[name] == theirs[name]; same != (other == kind) {
					t.Errorf("joined %s: %s namespace %s, the other container's is %s", kind, other, v.NS[name], theirs[name])
				}
			}
			if kind == specs.PIDNamespace && v.PID == 1 {
				t.Error("the process is the first of its PID namespace")
			}
			owner.Delete("--force")
			owner.WaitExit()
		})
	}
}

func TestJoinNamespacesAllAtOnce(t *testing.T) {
	b := harness.New(t)
	owner := b.Container("/inside", "hang").RunDetached()
	c := b.Container()
	c.Spec.Hostname = ""
	for _, kind := range []specs.LinuxNamespaceType{specs.PIDNamespace, specs.NetworkNamespace, specs.IPCNamespace, specs.UTSNamespace, specs.CgroupNamespace} {
		harness.NamespacePath(c.Spec, kind, procPath(owner.PID, "ns/"+nsNames[kind]))
	}
	v, theirs := c.Look(), processNamespaces(t, owner.PID)
	for _, name := range []string{"pid", "net", "ipc", "uts", "cgroup"} {
		if v.NS[name] != theirs[name] {
			t.Errorf("%s namespace %s, the other container's is %s", name, v.NS[name], theirs[name])
		}
	}
	owner.Delete("--force")
	owner.WaitExit()
}

func TestNamespacesRefused(t *testing.T) {
	own := func(name string) string { return "/proc/self/ns/" + name }
	for name, test := range map[string]struct {
		change func(s *specs.Spec)
		words  []string
	}{
		"twice": {func(s *specs.Spec) {
			s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: specs.PIDNamespace})
		}, []string{"/linux/namespaces/6"}},
		"unknown": {func(s *specs.Spec) {
			s.Linux.Namespaces = append(s.Linux.Namespaces, specs.LinuxNamespace{Type: "colour"})
		}, []string{"/linux/namespaces/6/type", "colour"}},
		"of another type": {func(s *specs.Spec) {
			harness.NamespacePath(s, specs.NetworkNamespace, own("uts"))
		}, []string{"/linux/namespaces/5/path", "is not a namespace of type network"}},
		"no namespace at all": {func(s *specs.Spec) {
			harness.NamespacePath(s, specs.NetworkNamespace, "/etc/passwd")
		}, []string{"/linux/namespaces/5", "/etc/passwd"}},
		"not there": {func(s *specs.Spec) {
			harness.NamespacePath(s, specs.NetworkNamespace, "/no/such/ns")
		}, []string{"/linux/namespaces/5", "no such file or directory"}},
		"relative": {func(s *specs.Spec) {
			harness.NamespacePath(s, specs.NetworkNamespace, "proc/self/ns/net")
		}, []string{"/linux/namespaces/5/path"}},
		"a hostname without a UTS namespace": {func(s *specs.Spec) {
			harness.WithoutNamespace(s, specs.UTSNamespace)
		}, []string{"/hostname"}},
		"time offsets without a time namespace": {func(s *specs.Spec) {
			s.Linux.TimeOffsets = map[string]specs.LinuxTimeOffset{"monotonic": {Secs: 1}}
		}, []string{"/linux/timeOffsets"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true")
			test.change(c.Spec)
			c.Run().Fails(t, test.words...)
		})
	}
}

// The container has a cgroup of its own in every hierarchy, and sees it as the root.
func TestOwnCgroup(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	for _, line := range strings.Split(strings.TrimSpace(readFile(t, procPath(c.PID, "cgroup"))), "\n") {
		parts := strings.SplitN(line, ":", 3)
		if !strings.HasSuffix(parts[2], "/"+c.ID) && parts[2] != "/"+c.ID {
			t.Errorf("hierarchy %s %q: the container is in %s", parts[0], parts[1], parts[2])
		}
	}
	for _, line := range b.Container().Look().Cgroups {
		if parts := strings.SplitN(line, ":", 3); parts[2] != "/" {
			t.Errorf("from inside: %s", line)
		}
	}
}

func TestCgroupsPathByDefault(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	c.Spec.Linux.CgroupsPath = ""
	c.RunDetached()
	for _, line := range strings.Split(strings.TrimSpace(readFile(t, procPath(c.PID, "cgroup"))), "\n") {
		if !strings.Contains(line, c.ID) {
			t.Errorf("the container's cgroup is not its own: %s", line)
		}
	}
}

func TestHostnameAndDomainname(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Hostname, c.Spec.Domainname = strings.Repeat("h", 64), "example.org"
	v := c.Look()
	if v.Hostname != c.Spec.Hostname || v.Domain != c.Spec.Domainname {
		t.Errorf("hostname %q, domainname %q", v.Hostname, v.Domain)
	}
	c.Spec.Hostname = strings.Repeat("h", 65)
	c.Run().Fails(t, "/hostname")
}

// Processes that the first one leaves behind are the kernel's to end: nothing of them is left, and
// the status is the first one's.
func TestPIDNamespaceEndsWithItsFirstProcess(t *testing.T) {
	b := harness.New(t)
	b.Container("/bin/sh", "-c", "for i in $(seq 20); do sleep 10000 & done; exit 3").Run().Exits(t, 3)
}

// In a network namespace of its own there is the loopback interface alone, and it is up.
func TestNetworkIsLoopbackAlone(t *testing.T) {
	b := harness.New(t)
	v := b.Container().Look()
	for _, l := range v.Links {
		if l.Name != "lo" {
			// tunnels that kernel modules add to each namespace are down.
			if l.Up {
				t.Errorf("%+v", l)
			}
		} else if !l.Up {
			t.Error("lo is down")
		}
	}
}
