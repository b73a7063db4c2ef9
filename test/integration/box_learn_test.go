package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

const learnMakefile = `test: built
	@cat built | tr a-z A-Z
built:
	@mkdir -p /tmp/parts && echo made > /tmp/parts/a && cat /tmp/parts/a > built
link:
	@ln -s built link && echo linked
`

// eachUser runs a test as who runs the tests, and as an ordinary user where that is root.
func eachUser(t *testing.T, test func(*testing.T, *harness.Box)) {
	t.Run("own", func(t *testing.T) { test(t, harness.NewForAnyone(t)) })
	if os.Geteuid() == 0 {
		t.Run("ordinary", func(t *testing.T) {
			b := harness.New(t)
			b.AsOrdinaryUser(t, 0)
			test(t, b)
		})
	}
}

// What a box has recorded is enough for another that does the same, and for nothing more.
func TestBoxLearns(t *testing.T) {
	eachUser(t, func(t *testing.T, b *harness.Box) {
		harness.NeedTool(t, "make", "make")
		b.WriteFile("Makefile", learnMakefile, 0o644)
		file := b.Path("p.json")
		on := func(option, target string) *harness.Command {
			return box(b, option, file, "--rw", ".", "--", "make", target)
		}
		r := on("--learn", "test").Run().OK(t)
		if r.Stdout != "MADE\n" || !strings.Contains(r.Stderr, " different system calls\n") {
			t.Errorf("%q, %q", r.Stdout, r.Stderr)
		}
		p := learned(t, b, "p.json")
		for name, want := range map[string]bool{"execve": true, "exit_group": true, "write": true, "mount": false, "unshare": false, "symlink": false} {
			n, _ := p.rules(name)
			if at, _ := p.rules(name + "at"); (n+at > 0) != want {
				t.Errorf("%s is allowed %d times, want %v", name, n, want)
			}
		}
		if err := os.Remove(b.Path("built")); err != nil {
			t.Fatal(err)
		}
		if r = on("--seccomp", "test").Run().OK(t); r.Stdout != "MADE\n" || r.Stderr != "" {
			t.Errorf("under what was learned: %q, %q", r.Stdout, r.Stderr)
		}
		// What was not is refused, and named though the profile may have no sendmsg.
		if r = on("--seccomp", "link").Run(); r.Code == 0 || !strings.Contains(r.Stderr, "denied: symlink") {
			t.Errorf("%d: %s", r.Code, r.Stderr)
		}
		on("--learn", "link").Run().OK(t)
		if err := os.Remove(b.Path("link")); err != nil {
			t.Fatal(err)
		}
		on("--seccomp", "link").Run().OK(t)
		if r = on("--seccomp", "test").Run().OK(t); r.Stdout != "MADE\n" {
			t.Errorf("after another recording: %q, %q", r.Stdout, r.Stderr)
		}
	})
}

// A box that is recorded has no more rights: what its profile refuses is refused, told of as ever,
// and not learned.
func TestBoxLearnsNoMoreThanItMay(t *testing.T) {
	b := harness.NewForAnyone(t)
	file := b.Path("report")
	call := func(number, arg int) string { return fmt.Sprintf("syscall=%d,%d", number, arg) }
	user, priority := call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), call(unix.SYS_GETPRIORITY, 0)
	args := []string{"--learn", b.Path("p.json"), "--report", "json:" + file, "--ro", harness.Helper(t), "--", harness.Helper(t), "try", user, priority}
	out := box(b, args...).Run().OK(t)
	got := harness.ParseAttempts(t, out.Stdout)
	harness.Refused(t, got, user, "EPERM")
	harness.Allowed(t, got, priority)
	var r denied
	harness.Decode(t, readFile(t, file), &r)
	if len(r.Denied) != 1 || r.Denied[0].Call != "unshare(CLONE_NEWUSER)" || r.Denied[0].AllowedWith != "CAP_SYS_ADMIN" {
		t.Errorf("%+v", r)
	}
	p := learned(t, b, "p.json")
	if n, _ := p.rules("unshare"); n != 0 {
		t.Errorf("a refused call has %d rules", n)
	}
	if n, _ := p.rules("getpriority"); n != 1 {
		t.Errorf("getpriority has %d rules", n)
	}
	// Without a profile there is nothing to refuse.
	out = box(b, append([]string{"--seccomp", "none"}, args...)...).Run().OK(t)
	harness.Allowed(t, harness.ParseAttempts(t, out.Stdout), priority)
	p = learned(t, b, "p.json")
	if n, _ := p.rules("unshare"); n != 1 {
		t.Errorf("without a profile unshare has %d rules", n)
	}
}

func TestBoxLearnFailures(t *testing.T) {
	b := harness.NewForAnyone(t)
	file := b.WriteFile("deny.json", someProfile, 0o644)
	r := box(b, "--learn", file, "--", "sh", "-c", "echo ran").Run().Exits(t, 125)
	if r.Stdout != "" || !strings.Contains(r.Stderr, "--learn "+file) || !strings.Contains(r.Stderr, "default action") {
		t.Errorf("%q, %q", r.Stdout, r.Stderr)
	}
	if text := readFile(t, file); text != someProfile {
		t.Errorf("the file became %s", text)
	}
	box(b, "--learn", b.WriteFile("text", "no JSON", 0o644), "--", "true").Run().Exits(t, 125)
	box(b, "--learn", b.Path("missing/file"), "--", "true").Run().Exits(t, 125)
	own := b.WriteFile("own.json", `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["getpriority"], "action": "SCMP_ACT_NOTIFY"}]}`, 0o644)
	r = box(b, "--seccomp", own, "--learn", b.Path("p.json"), "--", "true").Run().Exits(t, 125)
	if !strings.Contains(r.Stderr, "SCMP_ACT_NOTIFY") {
		t.Errorf("%q", r.Stderr)
	}
	// A command that fails is recorded as well.
	box(b, "--learn", b.Path("p.json"), "--", "sh", "-c", "exit 7").Run().Exits(t, 7)
	learned(t, b, "p.json")
}
