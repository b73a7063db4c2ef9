package integration

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// --dry-run says in a few lines what a box would be, and neither runs nor leaves anything.
func TestBoxDryRun(t *testing.T) {
	b := harness.NewForAnyone(t)
	b.WriteFile("kept/in", "in\n", 0o644)
	secret := b.WriteFile("home/.ssh/id", "key\n", 0o644)
	c := box(b, "--dry-run", "--rw", "kept", "--ro", "/usr:/u", "--tmp", "/srv", "--pids", "77", "--timeout", "30s", "--ulimit", "nofile=99",
		"--report", "json:report", "--save", "saved.tar", "--learn", "learned", "-e", "TOKEN=secret", "--", "/bin/sh", "-c", "touch kept/ran")
	c.Env = []string{"HOME=" + b.Path("home")}
	r := c.Run().OK(t)
	if n := strings.Count(r.Stdout, "\n"); n > 30 || r.Stderr != "" {
		t.Errorf("%d lines:\n%s%s", n, r.Stdout, r.Stderr)
	}
	for _, line := range []string{
		`"77" to pids\.max  # --pids`, `^Namespaces  new .*\bpid\b.*\bnetwork\b`, `^Root        /  # --rootfs`, `^Network     loopback only  # --net`,
		`bind \S*/kept on \S*/kept, .*  # --rw`, `bind /usr on /u, .*\brro\b.*  # --ro`, `tmpfs on /srv .*  # --tmp`, `hide the secrets .*\.ssh\b.*  # --show`,
		`RLIMIT_NOFILE 99, hard 99  # --ulimit`, `seccomp filter of \d+ instructions  # --seccomp`, `environment .*\bTOKEN\b.*  # --env`,
		`execute "/bin/sh" "-c" "touch kept/ran"`, `^Time        kill it after 30s  # --timeout`,
	} {
		if !regexp.MustCompile("(?m)" + line).MatchString(r.Stdout) {
			t.Errorf("no line is like %s:\n%s", line, r.Stdout)
		}
	}
	if strings.Contains(r.Stdout, "secret\n") || strings.Contains(r.Stdout, "config.json") || strings.Contains(r.Stdout, "# /") {
		t.Errorf("it has a secret, or an entry of a file that there is not:\n%s", r.Stdout)
	}
	for _, name := range []string{"kept/ran", "report", "saved.tar", "learned"} {
		if _, err := os.Lstat(b.Path(name)); err == nil {
			t.Errorf("it made %s", name)
		}
	}
	if entries, err := os.ReadDir(b.Root); err == nil && len(entries) > 0 {
		t.Errorf("it made a container: %v", entries)
	}
	if _, err := os.Stat(secret); err != nil {
		t.Error(err)
	}
}

// What a box would be refused for, a dry run is refused for.
func TestBoxDryRunRefuses(t *testing.T) {
	b := harness.NewForAnyone(t)
	for _, args := range [][]string{
		{"--rootfs", "/no/such", "--", "/bin/true"}, {"--user", "no-such-user", "--", "/bin/true"}, {"--ulimit", "wings=9", "--", "/bin/true"},
		{"--seccomp", "/no/such", "--", "/bin/true"},
	} {
		box(b, append([]string{"--dry-run"}, args...)...).Run().Exits(t, 125)
	}
}
