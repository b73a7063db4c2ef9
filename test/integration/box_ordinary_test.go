package integration

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// What a box is for an ordinary user, with subordinate ids and without: what he runs is himself
// there, what it writes is lost, and it leaves no process and no file (the harness looks).
func TestBoxOfOrdinaryUser(t *testing.T) {
	for _, subordinate := range []int{0, 65536} {
		t.Run(fmt.Sprintf("%d subordinate ids", subordinate), func(t *testing.T) {
			b := harness.New(t)
			u := b.AsOrdinaryUser(t, subordinate)
			r := box(b, "--", "/bin/sh", "-c", "id -u; echo x > /etc/berth-box-test && cat /etc/berth-box-test; cat /etc/shadow 2>/dev/null || echo no; tail -n +3 /proc/net/dev | cut -d: -f1").Run().OK(t)
			lines := r.Lines()
			if len(lines) != 4 || lines[0] != strconv.Itoa(u.UID) || lines[2] != "no" || strings.TrimSpace(lines[3]) != "lo" {
				t.Errorf("%q\n%s", lines, r.Stderr)
			}
			if _, err := os.Lstat("/etc/berth-box-test"); err == nil {
				t.Error("what it wrote is on the host")
			}
			if r := box(b, "--user", "root", "--", "/bin/sh", "-c", "id -u").Run().OK(t); r.Stdout != "0\n" {
				t.Errorf("as root: %q", r.Stdout)
			}
			box(b, "--", "no-such-command").Run().Exits(t, 127)
			box(b, "--timeout", "200ms", "--", "/bin/sh", "-c", "sleep 100000 & sleep 100000").Run().Exits(t, 124)
			// The user has no cgroup, so a limit is refused, in a sentence with the way to one.
			if r := box(b, "--memory", "100M", "--", "/bin/true").Run(); r.Code != 125 || !strings.Contains(r.Stderr, wayToLimits(t)) || strings.Count(r.Stderr, "\n") != 1 {
				t.Errorf("%d: %q", r.Code, r.Stderr)
			}
		})
	}
}

// wayToLimits is of the sentence by which a box without a cgroup refuses limits: only version 2 can
// be delegated.
func wayToLimits(t *testing.T) string {
	t.Helper()
	if onV2(t) {
		return "-p Delegate=yes gives"
	}
	return "run it as root, or without limits"
}
