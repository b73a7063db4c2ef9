package integration

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

func TestVersion(t *testing.T) {
	b := harness.New(t)
	for _, word := range []string{"--version", "-v", "-version"} {
		cmd := b.Command(word)
		cmd.Bare = true
		lines := cmd.Run().OK(t).Lines()
		patterns := []string{`^berth version \S+$`, `^commit: \S+$`, `^spec: 1\.\d+\.\d+\S*$`, `^go: go1\.\d+`}
		if len(lines) != len(patterns) {
			t.Fatalf("%s: %d lines: %q", word, len(lines), lines)
		}
		for i, pattern := range patterns {
			if !regexp.MustCompile(pattern).MatchString(lines[i]) {
				t.Errorf("%s: line %q, want %s", word, lines[i], pattern)
			}
		}
	}
}

// Who installs it under runc's name wants it to pass for runc.
func TestVersionByTheNameRunc(t *testing.T) {
	b := harness.New(t)
	link := b.Path("runc")
	if err := os.Symlink(harness.Engine(t), link); err != nil {
		t.Fatal(err)
	}
	cmd := b.Command("--version")
	cmd.Bare, cmd.Binary = true, link
	if r := cmd.Run().OK(t); !strings.HasPrefix(r.Stdout, "runc version ") {
		t.Errorf("%q", r.Stdout)
	}
}

func TestUnknownWords(t *testing.T) {
	b := harness.New(t)
	// A command of runc's own that there is not ends with 3, which callers know.
	for _, args := range [][]string{{"frobnicate"}, {"--debug", "runn"}} {
		if r := b.Berth(args...); r.Code != 3 || !strings.Contains(r.Stderr, "unknown command") {
			t.Errorf("%v: exit status %d, stderr %q", args, r.Code, r.Stderr)
		}
	}
	for _, args := range [][]string{
		{"cgroup", "frobnicate"}, {"--frobnicate", "list"}, {"list", "--frobnicate"}, {"run", "--frobnicate", "x"}, {"state", "x", "y"},
	} {
		r := b.Berth(args...)
		if r.Code != 1 || r.Stderr == "" {
			t.Errorf("%v: exit status %d, stderr %q", args, r.Code, r.Stderr)
		}
	}
}

func TestHelp(t *testing.T) {
	b := harness.New(t)
	commands := []string{"create", "start", "run", "state", "kill", "delete", "list", "exec", "ps", "events", "update", "pause", "resume",
		"spec", "checkpoint", "restore", "features", "gc", "explain", "doctor"}
	overview := b.Berth("--help").OK(t).Stdout
	for _, name := range commands {
		if !strings.Contains(overview, name) {
			t.Errorf("--help does not name %s", name)
		}
		if r := b.Berth(name, "--help"); r.Code != 0 || !strings.Contains(r.Stdout, name) {
			t.Errorf("%s --help: exit status %d, %q", name, r.Code, r.Stdout)
		}
		if r := b.Berth(name, "-h"); r.Code != 0 {
			t.Errorf("%s -h: exit status %d", name, r.Code)
		}
	}
}

func TestIDs(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Write()
	for _, id := range []string{"a", "A-b_c.d+e", strings.Repeat("x", 100), "0", "...", "-dash"} {
		args := []string{"run", "--bundle", c.Dir, id}
		if strings.HasPrefix(id, "-") {
			args = []string{"run", "--bundle", c.Dir, "--", id}
		}
		b.Berth(args...).OK(t)
	}
	for _, id := range []string{"", ".", "..", "a/b", "../x", "/x", "a b", "a\nb", "ä", "a:b", "a*", strings.Repeat("x", 5000)} {
		r := b.Berth("run", "--bundle", c.Dir, id)
		r.Fails(t)
		b.Berth("create", "--bundle", c.Dir, id).Fails(t)
	}
}

func TestFlagsOfOtherTimes(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Write()
	for _, globals := range [][]string{
		{"--rootless", "auto"}, {"--rootless=false"}, {"--criu", "/usr/sbin/criu"}, {"--log-format", "text"}, {"--debug=false"},
	} {
		b.Berth(append(globals, "run", "--bundle", c.Dir, c.ID)...).OK(t)
	}
	for _, flags := range [][]string{{"--no-subreaper"}, {"-no-subreaper"}, {"--no-pivot"}, {"--no-new-keyring"}, {"--preserve-fds", "0"}} {
		c.Run(flags...).OK(t)
	}
}

// A root directory that isn't there is made, and for its owner alone: there are configs in it.
func TestRootIsMade(t *testing.T) {
	b := harness.New(t)
	b.Root = b.Path("deep/er/root")
	b.Globals = []string{"--root", b.Root}
	b.Container("/bin/true").Create()
	info, err := os.Stat(b.Root)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm()&0o022 != 0 {
		t.Errorf("mode %v", info.Mode())
	}
}

// --version is all that is done, whatever command follows: a shell in a box, of those who have
// read -v as docker's, would be a surprise.
func TestVersionRunsNothing(t *testing.T) {
	b := harness.New(t)
	want := b.Berth("--version").OK(t).Stdout
	for _, args := range [][]string{{"-v", "box"}, {"-v", "box", "--", "/bin/echo", "ran"}, {"--version", "list"}} {
		if r := b.Berth(args...).OK(t); r.Stdout != want {
			t.Errorf("%q: %q", args, r.Stdout)
		}
	}
	for _, args := range [][]string{{"help", "box"}, {"help", "run"}, {"help", "cgroup", "create"}} {
		if r := b.Berth(args...).OK(t); !strings.Contains(r.Stdout, "Usage: berth "+strings.Join(args[1:], " ")) {
			t.Errorf("%q: %.200q", args, r.Stdout)
		}
	}
}
