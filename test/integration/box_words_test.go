package integration

import (
	"os"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// The options that docker and podman have too do in the box what they do there.
func TestBoxWords(t *testing.T) {
	b := harness.NewForAnyone(t)
	b.WriteFile("data/in", "in\n", 0o644)
	env := b.WriteFile("env", "# a comment\nONE=1\n\n  TWO=2 words\r\nPASSED\nABSENT\n", 0o644)
	c := box(b, "-it", "--rm", "-v", "data:/data:ro", "--volume", b.Path("data")+":/kept", "--tmpfs", "/usr/share:size=64K", "--env-file", env,
		"--hostname", "inside", "--ulimit", "nofile=100:200", "--ulimit", "core=0", "--", "/bin/sh", "-c", `
		cat /data/in; echo x 2>/dev/null > /data/new || echo refused; echo kept > /kept/new
		head -c 100000 /dev/zero 2>/dev/null > /usr/share/big || echo full
		echo $ONE $TWO $PASSED ${ABSENT-none}; cat /proc/sys/kernel/hostname; ulimit -n; ulimit -Hn; ulimit -c`)
	c.Env = []string{"PASSED=passed"}
	r := c.Run().OK(t)
	if want := "in\nrefused\nfull\n1 2 words passed none\ninside\n100\n200\n0\n"; r.Stdout != want {
		t.Errorf("%q, want %q; %s", r.Stdout, want, r.Stderr)
	}
	if text, err := os.ReadFile(b.Path("data/new")); string(text) != "kept\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestBoxCapabilities(t *testing.T) {
	b := harness.New(t)
	bounding := func(args ...string) string {
		return strings.TrimSpace(box(b, append(args, "--", "/bin/sh", "-c", "grep CapBnd: /proc/self/status | cut -f2")...).Run().OK(t).Stdout)
	}
	const kill, chown, raw = 1 << 5, 1 << 0, 1 << 13
	usual := bounding()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--cap-drop", "all"}, "0000000000000000"},
		{[]string{"--cap-drop", "ALL", "--cap-add", "net_raw", "--cap-add", "CAP_KILL"}, hex16(raw | kill)},
		{[]string{"--cap-drop", "ALL", "--cap-add", "CHOWN", "--cap-add", "CHOWN"}, hex16(chown)},
	} {
		if got := bounding(test.args...); got != test.want || got == usual {
			t.Errorf("%q: %s, want %s, without it %s", test.args, got, test.want, usual)
		}
	}
	box(b, "--cap-drop", "NET_RAWW", "--", "/bin/true").Run().Exits(t, 125)
}

func hex16(n int) string {
	const digits = "0123456789abcdef"
	text := []byte("0000000000000000")
	for i := 15; n > 0; i, n = i-1, n>>4 {
		text[i] = digits[n&15]
	}
	return string(text)
}

func TestBoxPinned(t *testing.T) {
	harness.Controller(t, "cpuset")
	b := harness.New(t)
	if r := box(b, "--cpuset-cpus", "0", "--", "/bin/grep", "Cpus_allowed_list", "/proc/self/status").Run().OK(t); !strings.HasSuffix(r.Stdout, "\t0\n") {
		t.Errorf("%q", r.Stdout)
	}
}

// All failures of our own exit with 125, in a line that says what to do.
func TestBoxRefusesWords(t *testing.T) {
	b := harness.NewForAnyone(t)
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"-t", "30s", "--", "/bin/true"}, "--timeout 30s"},
		{[]string{"-p", "80", "--", "/bin/true"}, "HOSTPORT:80"},
		{[]string{"--net", "host", "-p", "8080:80", "--", "/bin/true"}, "all its ports are the host's"},
		{[]string{"--net", "none", "-p", "8080:80", "--", "/bin/true"}, "--net nat"},
		{[]string{"-v", "data:/data", "--", "/bin/true"}, "no named volumes"},
		{[]string{"-v", "/usr", "--", "/bin/true"}, "SRC:DST"},
		{[]string{"-v", "/usr:/u:exec", "--", "/bin/true"}, "unknown option exec"},
		{[]string{"--ulimit", "nofile=9:8", "--", "/bin/true"}, "above the hard one"},
		{[]string{"--ulimit", "wings=9", "--", "/bin/true"}, "RLIMIT_WINGS"},
		{[]string{"--tmp", "usr", "--", "/bin/true"}, "not an absolute path"},
		{[]string{"--tmp", "/usr:exec", "--", "/bin/true"}, "unknown option exec"},
		{[]string{"--cap-add", "ALL", "--", "/bin/true"}, "name those"},
		{[]string{"--env-file", "/no/such/file", "--", "/bin/true"}, "no such file"},
	} {
		r := box(b, test.args...).Run().Exits(t, 125)
		if !strings.Contains(r.Stderr, test.want) || strings.Count(r.Stderr, "\n") != 1 {
			t.Errorf("%q: %q, want %q in one line", test.args, r.Stderr, test.want)
		}
	}
}

func TestBoxReportsToStandardOutput(t *testing.T) {
	b := harness.NewForAnyone(t)
	r := box(b, "--report", "json:-", "--diff=json:-", "--", "/bin/echo", "said").Run().OK(t)
	lines := r.Lines()
	if len(lines) != 3 || lines[0] != "said" || !strings.HasPrefix(lines[1], `{"changes":[]`) || !strings.Contains(lines[2], `"status":0`) {
		t.Errorf("%q", r.Stdout)
	}
	if _, err := os.Lstat(b.Path("-")); err == nil {
		t.Error("it made a file")
	}
}
