package integration

import (
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/seccomp"
	"github.com/berth-runtime/berth/test/harness"
)

// A box that is made with --nest can have boxes in it, which shut off as much as others.
func TestBoxInBox(t *testing.T) {
	b := harness.New(t)
	u := b.AsOrdinaryUser(t, 0)
	engine := publicCopy(t, b)
	inner := []string{"/opt/berth", "box", "--", "/bin/sh", "-c",
		"id -u; echo /proc/[0-9]*; echo x > /etc/berth-box-test && cat /etc/berth-box-test; grep Seccomp: /proc/self/status; tail -n +3 /proc/net/dev | cut -d: -f1"}
	r := box(b, append([]string{"--nest", "--ro", engine + ":/opt/berth", "--"}, inner...)...).Run().OK(t)
	lines := r.Lines()
	if len(lines) != 5 || lines[0] != strconv.Itoa(u.UID) || len(strings.Fields(lines[1])) > 4 || lines[2] != "x" || lines[3] != "Seccomp:\t2" || strings.TrimSpace(lines[4]) != "lo" {
		t.Errorf("%q\n%s", lines, r.Stderr)
	}
	// What another box refuses is named by that one.
	r = box(b, "--nest", "--ro", engine+":/opt/berth", "--", "/opt/berth", "box", "--", "/bin/sh", "-c", "unshare --user true").Run()
	if r.Code == 0 || !strings.Contains(r.Stderr, "denied: unshare(CLONE_NEWUSER)") {
		t.Errorf("%d: %s", r.Code, r.Stderr)
	}
	// Its own failures are told from those of the outer one by nothing: it is what that has run.
	box(b, "--nest", "--ro", engine+":/opt/berth", "--", "/opt/berth", "box", "--", "no-such-program").Run().Exits(t, 127)

	// Without it the way to it is said, in a line.
	r = box(b, "--explain-denials=false", "--ro", engine+":/opt/berth", "--", "/opt/berth", "box", "--", "/bin/true").Run()
	r.FailsWith(t, 125, "seccomp profile", "berth box --nest")
	r = box(b, "--seccomp", "none", "--ro", engine+":/opt/berth", "--", "/opt/berth", "box", "--", "/bin/true").Run()
	r.FailsWith(t, 125, "/proc is covered", "berth box --nest")
}

// Root's boxes have no boxes in them, and say what does.
func TestBoxInBoxOfRoot(t *testing.T) {
	b := harness.New(t)
	box(b, "--report", "none", "--ro", harness.Engine(t)+":/opt/berth", "--", "/opt/berth", "box", "--", "/bin/true").Run().FailsWith(t, 125, "CAP_SYS_ADMIN", "--nest")
	box(b, "--nest", "--", "/bin/true").Run().FailsWith(t, 125, "--nest is for ordinary users")
}

// likeDockers makes a container as docker run does by default: its capabilities and its profile.
// The paths that it covers are the harness's default.
func likeDockers(c *harness.Container, engine string) {
	kept := []string{
		"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_MKNOD", "CAP_NET_BIND_SERVICE",
		"CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT",
	}
	c.Spec.Process.Capabilities = &specs.LinuxCapabilities{Bounding: kept, Effective: kept, Permitted: kept}
	c.Spec.Process.NoNewPrivileges = false
	c.Spec.Linux.Seccomp = seccomp.Default(kept...)
	c.Spec.Mounts = append(c.Spec.Mounts,
		specs.Mount{Destination: "/opt/berth", Type: "bind", Source: engine, Options: []string{"bind", "ro"}},
		specs.Mount{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs", Options: []string{"mode=1777"}},
	)
}

// In a container like Docker's a box says what is missing, and works once that is given.
func TestBoxInDockersContainer(t *testing.T) {
	harness.NeedNamespace(t, "user")
	b := harness.New(t)
	engine := publicCopy(t, b)
	for _, test := range []struct {
		name   string
		uid    uint32
		change func(*specs.Spec)
		want   []string // of its message; none if it works
	}{
		{"root", 0, func(*specs.Spec) {}, []string{"CAP_SYS_ADMIN", "docker run --privileged"}},
		{"a user", 1000, func(*specs.Spec) {}, []string{"seccomp profile", "--security-opt seccomp=unconfined"}},
		{"without a profile", 1000, func(s *specs.Spec) { s.Linux.Seccomp = nil }, []string{"/proc is covered", "--security-opt systempaths=unconfined"}},
		{"with all", 1000, func(s *specs.Spec) { s.Linux.Seccomp, s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = nil, nil, nil }, nil},
	} {
		c := b.Container("/opt/berth", "box", "--", "/bin/sh", "-c", "echo in a box; echo x > /new && cat /new")
		likeDockers(c, engine)
		c.Spec.Process.User = specs.User{UID: test.uid, GID: test.uid}
		test.change(c.Spec)
		r := c.Run()
		if test.want != nil {
			r.FailsWith(t, 125, test.want...)
		} else if r.Code != 0 || r.Stdout != "in a box\nx\n" {
			t.Errorf("%s: %d, %q, %s", test.name, r.Code, r.Stdout, r.Stderr)
		}
	}
}
