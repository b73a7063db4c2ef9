package integration

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// Keys and tokens of a home are not in a box that did not ask for them, not by another path and not
// where the home is given to it.
func TestBoxHidesSecrets(t *testing.T) {
	asBoth(t, func(t *testing.T, b *harness.Box, root bool) {
		for _, name := range []string{".ssh/id_test", ".ssh/known_hosts", ".aws/credentials", ".netrc", "work"} {
			b.WriteFile("home/"+name, "content of "+name+"\n", 0o644)
		}
		run := func(args ...string) string {
			t.Helper()
			c := box(b, args...)
			c.Env = []string{"HOME=" + b.Path("home")}
			return c.Run().OK(t).Stdout
		}
		const look = `for dir in "$HOME" /data; do cat $dir/.ssh/* $dir/.aws/* $dir/.netrc $dir/work; done 2>/dev/null; true`
		all := "content of .ssh/id_test\ncontent of .ssh/known_hosts\ncontent of .aws/credentials\ncontent of .netrc\ncontent of work\n"
		for _, test := range []struct {
			args []string
			want string
		}{
			{nil, "content of work\n"},
			{[]string{"--net", "host"}, "content of work\n"},
			{[]string{"--rw", "home", "-v", "home:/data"}, "content of work\ncontent of work\n"},
			{[]string{"--show", "/"}, all},
			{[]string{"--show", "home/.ssh", "--ro", "home/.netrc", "--show", "home/.aws"}, all},
			{[]string{"--show", "home/.ssh/known_hosts"}, "content of .ssh/known_hosts\ncontent of work\n"},
			{[]string{"--ro", "home/.ssh/known_hosts"}, "content of .ssh/known_hosts\ncontent of work\n"},
			{[]string{"-v", "home/.ssh:/data/.ssh"}, all[:len("content of .ssh/id_test\ncontent of .ssh/known_hosts\n")] + "content of work\n" + all[:len("content of .ssh/id_test\ncontent of .ssh/known_hosts\n")]},
		} {
			if got := run(append(test.args, "--", "/bin/sh", "-c", look)...); got != test.want {
				t.Errorf("%q shows %q, want %q", test.args, got, test.want)
			}
		}
		// It is told, in full in a report and to who sees only that it failed.
		c := box(b, "--", "/bin/sh", "-c", "exit 3")
		c.Env = []string{"HOME=" + b.Path("home")}
		if r := c.Run().Exits(t, 3); !strings.Contains(r.Stderr, "berth box: hidden: ~/.ssh ~/.aws ~/.netrc (--show PATH)\n") && !root {
			t.Errorf("%q", r.Stderr)
		}
		var told struct{ Hidden []string }
		harness.Decode(t, run("--report", "json:-", "--", "/bin/true"), &told)
		for _, name := range []string{".ssh", ".aws", ".netrc"} {
			if !slices.Contains(told.Hidden, b.Path("home/"+name)) {
				t.Errorf("it tells of %q, without %s", told.Hidden, name)
			}
		}
		box(b, "--show", "home/none", "--", "/bin/true").Run().Exits(t, 125)
	})
}

// Root's box has no passwords of the machine in it, and users can be added in it.
func TestBoxHidesPasswords(t *testing.T) {
	harness.NeedTool(t, "useradd", "passwd")
	b := harness.New(t)
	shadow, err := os.ReadFile("/etc/shadow")
	if err != nil {
		harness.Skip(t, "needs /etc/shadow: %v", err)
	}
	r := box(b, "--", "/bin/sh", "-c", "cut -d: -f2 /etc/shadow /etc/shadow- /etc/gshadow | sort -u; useradd berth-test-user && grep -c ^berth-test-user: /etc/shadow; stat -c '%a %u:%g' /etc/shadow").Run().OK(t)
	lines := r.Lines()
	if len(lines) < 2 || lines[len(lines)-2] != "1" {
		t.Fatalf("%q, %s", r.Stdout, r.Stderr)
	}
	for _, password := range lines[:len(lines)-2] {
		if len(password) > 2 {
			t.Errorf("it shows the password %q", password)
		}
	}
	if now, err := os.ReadFile("/etc/shadow"); err != nil || string(now) != string(shadow) {
		t.Errorf("the machine's passwords are other ones: %v", err)
	}
	dir := box(b, "--", "/bin/sh", "-c", "cat /etc/shadow | wc -l")
	dir.Dir = "/etc" // which is read-only then
	if r := dir.Run().OK(t); r.Stdout != "0\n" {
		t.Errorf("%q", r.Stdout)
	}
	if r := box(b, "--show", "/etc/shadow", "--", "cat", "/etc/shadow").Run().OK(t); r.Stdout != string(shadow) {
		t.Error("--show does not show it")
	}
	// What may be brought back to the machine is whole.
	if r := box(b, "--save", b.Path("s.tar"), "--", "cat", "/etc/shadow").Run().OK(t); r.Stdout != string(shadow) {
		t.Error("--save would keep a file without the passwords")
	}
}
