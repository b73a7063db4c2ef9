package integration

import (
	"encoding/json"
	"os"
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

func wantCaps(t *testing.T, v *view.View, set string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := harness.Caps(t, v, set); !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", set, got, want)
	}
}

func TestCapabilitiesOfRoot(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Process.Capabilities = &specs.LinuxCapabilities{
		Bounding:    []string{"CAP_KILL", "CAP_CHOWN", "CAP_SYS_CHROOT"},
		Effective:   []string{"CAP_KILL"},
		Permitted:   []string{"CAP_KILL", "CAP_CHOWN"},
		Inheritable: []string{"CAP_CHOWN"},
		Ambient:     []string{"CAP_CHOWN"},
	}
	v := c.Look()
	// execve gives root all that is in the bounding set.
	wantCaps(t, v, "Bnd", "CAP_CHOWN", "CAP_KILL", "CAP_SYS_CHROOT")
	wantCaps(t, v, "Prm", "CAP_CHOWN", "CAP_KILL", "CAP_SYS_CHROOT")
	wantCaps(t, v, "Eff", "CAP_CHOWN", "CAP_KILL", "CAP_SYS_CHROOT")
	wantCaps(t, v, "Inh", "CAP_CHOWN")
	wantCaps(t, v, "Amb", "CAP_CHOWN")
}

// An ordinary user keeps what is ambient, and nothing else.
func TestCapabilitiesOfAUser(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Process.User.UID = 1000
	c.Spec.Process.Capabilities = &specs.LinuxCapabilities{
		Bounding:    []string{"CAP_KILL", "CAP_CHOWN", "CAP_NET_BIND_SERVICE"},
		Effective:   []string{"CAP_KILL", "CAP_NET_BIND_SERVICE"},
		Permitted:   []string{"CAP_KILL", "CAP_NET_BIND_SERVICE"},
		Inheritable: []string{"CAP_KILL", "CAP_NET_BIND_SERVICE"},
		Ambient:     []string{"CAP_NET_BIND_SERVICE"},
	}
	v := c.Look()
	wantCaps(t, v, "Bnd", "CAP_CHOWN", "CAP_KILL", "CAP_NET_BIND_SERVICE")
	wantCaps(t, v, "Prm", "CAP_NET_BIND_SERVICE")
	wantCaps(t, v, "Eff", "CAP_NET_BIND_SERVICE")
	wantCaps(t, v, "Inh", "CAP_KILL", "CAP_NET_BIND_SERVICE")
	wantCaps(t, v, "Amb", "CAP_NET_BIND_SERVICE")
}

// Loading a filter takes an effective CAP_SYS_ADMIN, which a process that is only permitted it
// has until its execve.
func TestCapabilitiesPermittedAloneWithAFilter(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Process.User.UID = 1000
	c.Spec.Process.Capabilities = &specs.LinuxCapabilities{
		Bounding: []string{"CAP_CHOWN", "CAP_SYS_ADMIN"}, Effective: []string{"CAP_CHOWN"}, Permitted: []string{"CAP_CHOWN", "CAP_SYS_ADMIN"},
	}
	c.Spec.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow,
		Syscalls: []specs.LinuxSyscall{{Names: []string{"acct"}, Action: specs.ActErrno}}}
	v := c.Look()
	if v.Status["Seccomp"] != "2" {
		t.Errorf("Seccomp: %s, want 2, a filter", v.Status["Seccomp"])
	}
	wantCaps(t, v, "Bnd", "CAP_CHOWN", "CAP_SYS_ADMIN")
	wantCaps(t, v, "Eff")
	wantCaps(t, v, "Prm")
}

// A config that does not speak of capabilities gives none: to leave root all that
// the engine has would hand the host over.
func TestCapabilitiesNone(t *testing.T) {
	for _, uid := range []uint32{0, 1000} {
		for _, none := range []*specs.LinuxCapabilities{{}, nil} {
			b := harness.New(t)
			c := b.Container()
			c.Spec.Process.User.UID = uid
			c.Spec.Process.Capabilities = none
			v := c.Look()
			for _, set := range []string{"Bnd", "Prm", "Eff", "Inh", "Amb"} {
				wantCaps(t, v, set)
			}
		}
	}
}

// Capabilities of a later kernel are a warning, and the others are set.
func TestCapabilitiesUnknown(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "look")
	c.Spec.Process.Capabilities = &specs.LinuxCapabilities{
		Bounding:  []string{"CAP_KILL", "CAP_OF_TOMORROW"},
		Effective: []string{"CAP_KILL", "CAP_OF_TOMORROW"},
		Permitted: []string{"CAP_KILL", "CAP_OF_TOMORROW"},
	}
	r := c.Run().OK(t).Warns(t, "CAP_OF_TOMORROW")
	wantCaps(t, harness.ParseView(t, r.Stdout), "Bnd", "CAP_KILL")
}

// What the runtime does not have itself it can't grant: the container runs without, and
// the warning says which. In a user namespace it can.
func TestCapabilitiesThatCannotBeGranted(t *testing.T) {
	for _, uid := range []uint32{0, 1000} {
		b := harness.New(t)
		b.Wrap = []string{"setpriv", "--bounding-set", "-sys_time"}
		c := b.Container("/inside", "hang")
		both := []string{"CAP_CHOWN", "CAP_SYS_TIME"}
		c.Spec.Process.User.UID = uid
		c.Spec.Process.Capabilities = &specs.LinuxCapabilities{Bounding: both, Effective: both, Permitted: both, Inheritable: both, Ambient: both}
		out, w := b.Pipe()
		c.Stderr = w
		c.RunDetached()
		w.Close()
		out.Until("/process/capabilities: CAP_SYS_TIME can't be granted")
		process := *c.Spec.Process
		process.Args = []string{"/inside", "look"}
		data, err := json.Marshal(process)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"exec", c.ID, "/inside", "look"}, {"exec", "--process", b.WriteFile("process.json", string(data), 0o644), c.ID}} {
			v := harness.ParseView(t, b.Berth(args...).OK(t).Warns(t, "/capabilities", "CAP_SYS_TIME").Stdout)
			for _, set := range []string{"Bnd", "Prm", "Eff", "Inh", "Amb"} {
				wantCaps(t, v, set, "CAP_CHOWN")
			}
		}
		first, err := os.ReadFile(procPath(c.PID, "status"))
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range []string{"CapBnd", "CapPrm", "CapEff", "CapInh", "CapAmb"} {
			if got := statusField(string(first), set); got != "0000000000000001" {
				t.Errorf("%s of the first process: %s", set, got)
			}
		}
		c.Delete("--force")

		c = b.Container("/inside", "look")
		harness.UserNamespace(c.Spec)
		c.Spec.Process.User.UID = uid
		c.Spec.Process.Capabilities = &specs.LinuxCapabilities{Bounding: both, Effective: both, Permitted: both, Inheritable: both, Ambient: both}
		wantCaps(t, harness.ParseView(t, c.Run().OK(t).Stdout), "Prm", both...)
	}
}

// The sets are not only in /proc: what they don't allow is refused.
func TestCapabilitiesDecide(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	without := []string{"CAP_SETUID"}
	c.Spec.Process.Capabilities = &specs.LinuxCapabilities{Bounding: without, Effective: without, Permitted: without}
	got := c.Try("sethostname=other", "mknod=/tmp/null,1,3", "chown=/etc/passwd,5,5")
	for _, what := range []string{"sethostname=other", "mknod=/tmp/null,1,3", "chown=/etc/passwd,5,5"} {
		harness.Refused(t, got, what, "EPERM")
	}
	with := []string{"CAP_SYS_ADMIN", "CAP_CHOWN"}
	c.Spec.Process.Capabilities = &specs.LinuxCapabilities{Bounding: with, Effective: with, Permitted: with}
	got = c.Try("sethostname=other", "chown=/etc/passwd,5,5")
	harness.Allowed(t, got, "sethostname=other", "chown=/etc/passwd,5,5")
}
