package integration

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// What docs/box.md says of other programs beside berth box: each row is a command of theirs, and of
// ours where both have it.
func TestBoxBesideOthers(t *testing.T) {
	b := harness.New(t)
	home := b.Path("home")
	b.WriteFile("home/.npmrc", "token\n", 0o600)
	for _, test := range []struct {
		claim, line, version string
		code                 int
		said                 string // in what it prints, on either stream
	}{
		{"bubblewrap has no overlays", "bwrap --tmp-overlay / true", "bubblewrap 0.8.", 1, "Unknown option"},
		{"bubblewrap has the host's network", "bwrap --bind / / readlink /proc/self/ns/net", "", 0, ownNetwork(t)},
		{"bubblewrap shows keys", "bwrap --ro-bind / / cat " + home + "/.npmrc", "", 0, "token"},
		{"bubblewrap has no filter of its own", "bwrap --bind / / grep Seccomp: /proc/self/status", "", 0, "Seccomp:\t0"},
		{"bubblewrap's own failures", "bwrap --no-such-option true", "", 1, "Unknown option"},
		{"bubblewrap and a missing program", "bwrap --bind / / /no/such/program", "", 1, "No such file"},

		{"firejail has no overlays in Debian", "firejail --quiet --noprofile --overlay-tmpfs true", "firejail version 0.9.72", 1, "invalid --overlay-tmpfs"},
		{"firejail refuses to write to /etc", "firejail --quiet touch /etc/berth-box-test", "", 1, "Read-only file system"},
		{"firejail has the host's network", "firejail --quiet readlink /proc/self/ns/net", "", 0, ownNetwork(t)},
		{"firejail has a filter by its profile", "firejail --quiet grep Seccomp: /proc/self/status", "", 0, "Seccomp:\t2"},
		{"firejail's own failures", "firejail --no-such-option true", "", 1, "invalid --no-such-option"},
		{"firejail and a missing program", "firejail --quiet --noprofile /no/such/program", "", 1, "no suitable"},

		{"podman's own failures", "podman run --no-such-option x", "", 125, "unknown flag"},
	} {
		t.Run(test.claim, func(t *testing.T) {
			words := strings.Fields(test.line)
			harness.NeedTool(t, words[0], strings.Replace(words[0], "bwrap", "bubblewrap", 1))
			if test.version != "" {
				if out, err := exec.Command(words[0], "--version").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), test.version) {
					harness.Skip(t, "said of %s: this is %s", test.version, out)
				}
			}
			c := exec.Command(words[0], words[1:]...)
			c.Env = append(os.Environ(), "HOME="+home)
			out, err := c.CombinedOutput()
			var exited *exec.ExitError
			if err != nil && !errors.As(err, &exited) {
				t.Fatal(err)
			}
			if code := c.ProcessState.ExitCode(); code != test.code || !strings.Contains(string(out), test.said) {
				t.Errorf("%s: %d, %q, want %d and %q", test.line, code, out, test.code, test.said)
			}
		})
	}
}

func ownNetwork(t *testing.T) string {
	t.Helper()
	name, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	return name
}
