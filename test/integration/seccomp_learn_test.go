package integration

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// profile is what learn writes, as far as the tests read it.
type profile struct {
	DefaultAction string
	Architectures []string
	Syscalls      []struct {
		Names  []string
		Action string
		Args   []struct {
			Index, Value, ValueTwo uint64
			Op                     string
		}
	}
}

// rules are those that name a call.
func (p *profile) rules(name string) (n int, conditions bool) {
	for _, s := range p.Syscalls {
		if s.Action == "SCMP_ACT_ALLOW" && slices.Contains(s.Names, name) {
			n++
			conditions = conditions || len(s.Args) > 0
		}
	}
	return n, conditions
}

func learned(t *testing.T, b *harness.Box, file string) (p profile) {
	t.Helper()
	harness.Decode(t, readFile(t, b.Path(file)), &p)
	if p.DefaultAction != "SCMP_ACT_ERRNO" || len(p.Architectures) == 0 {
		t.Errorf("%+v", p)
	}
	return p
}

// What is learned is what was called, by children too, and is enough for a second run and a box.
func TestSeccompLearn(t *testing.T) {
	b := harness.NewForAnyone(t)
	made := b.Path("made")
	script := "mkdir " + made + " && rmdir " + made + " && echo done"
	r := b.Berth("seccomp", "learn", "-o", b.Path("p.json"), "--check", "--", "sh", "-c", script).OK(t)
	if r.Stdout != "done\ndone\n" || !strings.Contains(r.Stderr, "different system calls") {
		t.Errorf("%q, %q", r.Stdout, r.Stderr)
	}
	p := learned(t, b, "p.json")
	for name, want := range map[string]bool{
		"mkdir": true, "rmdir": true, "execve": true, "write": true, "exit_group": true, "rt_sigreturn": true,
		"unshare": false, "mount": false, "sendmsg": false, "symlink": false,
	} {
		n, _ := p.rules(name)
		if at, _ := p.rules(name + "at"); (n+at > 0) != want {
			t.Errorf("%s is allowed %d times, want %v", name, n, want)
		}
	}
	box(b, "--seccomp", b.Path("p.json"), "--", "sh", "-c", "mkdir /tmp/made && echo made").Run().OK(t)
	refused := box(b, "--seccomp", b.Path("p.json"), "--", "ln", "-s", "x", "/tmp/link").Run()
	if refused.Code == 0 {
		t.Errorf("a call that was not learned is let through: %q", refused.Stdout)
	}
}

// Another run does something else: the check says so, and merging makes it good.
func TestSeccompLearnMerges(t *testing.T) {
	b := harness.NewForAnyone(t)
	file, mark, link := b.Path("p.json"), b.Path("mark"), b.Path("link")
	// The second run does what the first didn't.
	script := "[ -e " + mark + " ] && how=-s; : > " + mark + "; ln $how " + mark + " " + link + " && rm " + link
	r := b.Berth("seccomp", "learn", "-o", file, "--check", "--", "sh", "-c", script)
	if r.Code != 1 || !strings.Contains(r.Stderr, "denied: symlink") || !strings.Contains(r.Stderr, "--merge") {
		t.Fatalf("%d: %s", r.Code, r.Stderr)
	}
	b.Berth("seccomp", "learn", "--merge", file, "-o", file, "--check", "--", "sh", "-c", script).OK(t)
	p := learned(t, b, "p.json")
	for _, name := range []string{"link", "symlink"} {
		n, _ := p.rules(name)
		if at, _ := p.rules(name + "at"); n+at == 0 {
			t.Errorf("%s is missing after the merge", name)
		}
	}
	if r := b.Berth("seccomp", "diff", file, file).OK(t); r.Stdout != "" {
		t.Errorf("a profile differs from itself: %s", r.Stdout)
	}
	if r := b.Berth("seccomp", "diff", "default", file); r.Code != 1 || !strings.Contains(r.Stdout, " ptrace: ALLOW → ERRNO EPERM\n") {
		t.Errorf("%d: %s", r.Code, r.Stdout)
	}
	b.Berth("seccomp", "learn", "--merge", b.WriteFile("deny.json", someProfile, 0o644), "--", "true").FailsWith(t, 125, "deny.json", "default action")
	b.Berth("seccomp", "learn", "--merge", b.Path("missing"), "--", "true").FailsWith(t, 125, "missing", "no such file")
}

// With --args a profile keeps to the namespaces and families that were used.
func TestSeccompLearnArgs(t *testing.T) {
	b := harness.NewForAnyone(t)
	file := b.Path("p.json")
	try := []string{harness.Helper(t), "try"}
	socket := func(family int) string {
		return fmt.Sprintf("syscall=%d,%d,%d", unix.SYS_SOCKET, family, unix.SOCK_STREAM)
	}
	unixSocket, inetSocket := socket(unix.AF_UNIX), socket(unix.AF_INET)
	b.Berth(append([]string{"seccomp", "learn", "--args", "-o", file, "--"}, append(try, unixSocket)...)...).OK(t)
	p := learned(t, b, "p.json")
	if n, conditions := p.rules("socket"); n != 1 || !conditions {
		t.Errorf("socket has %d rules", n)
	}
	if n, conditions := p.rules("clone"); n != 1 || !conditions {
		t.Errorf("clone has %d rules", n)
	}
	if text := readFile(t, file); strings.Contains(text, `"valueTwo": 0,`) {
		t.Errorf("it has what config.json can do without:\n%s", text)
	}
	out := box(b, append([]string{"--seccomp", file, "--ro", harness.Helper(t), "--"}, append(try, unixSocket, inetSocket)...)...).Run().OK(t)
	got := harness.ParseAttempts(t, out.Stdout)
	harness.Allowed(t, got, unixSocket)
	harness.Refused(t, got, inetSocket, "EPERM")
}

func TestSeccompLearnStatus(t *testing.T) {
	b := harness.NewForAnyone(t)
	file := b.Path("p.json")
	b.Berth("seccomp", "learn", "-o", file, "--", "sh", "-c", "exit 7").Exits(t, 7)
	b.Berth("seccomp", "learn", "-o", file, "--", "sh", "-c", "kill -TERM $$").Exits(t, 128+15)
	b.Berth("seccomp", "learn", "-o", file, "--", "/no/such/program").Exits(t, 127)
	b.Berth("seccomp", "learn", "-o", file, "--", b.WriteFile("text", "no program", 0o755)).Exits(t, 126)
	r := b.Berth("seccomp", "learn", "--kubernetes", "--", "sh", "-c", "echo out").OK(t)
	for _, want := range []string{"kind: SeccompProfile\n", "  name: sh\n", "  defaultAction: SCMP_ACT_ERRNO\n", "    - write\n"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("no %q in\n%s", want, r.Stdout)
		}
	}
	if strings.Contains(r.Stdout, "out\n") || !strings.Contains(r.Stderr, "out\n") {
		t.Errorf("the command's output is in the profile: %q, %q", r.Stdout, r.Stderr)
	}
}

// What the command leaves running is recorded to its end.
func TestSeccompLearnWaitsForAll(t *testing.T) {
	b := harness.NewForAnyone(t)
	fifo := b.Path("fifo")
	b.Berth("seccomp", "learn", "-o", b.Path("p.json"), "--", "sh", "-c",
		"mkfifo "+fifo+"; (read line < "+fifo+"; exec ln -s x "+b.Path("link")+") & echo $! > "+b.Path("pid")+"; exec sh -c 'echo go > "+fifo+"'").OK(t)
	// It is our child by now.
	pid, err := strconv.Atoi(strings.TrimSpace(readFile(t, b.Path("pid"))))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
		t.Errorf("process %d: %v", pid, err)
	}
	p := learned(t, b, "p.json")
	n, _ := p.rules("symlink")
	if at, _ := p.rules("symlinkat"); n+at == 0 {
		t.Error("what came after the command's end is missing")
	}
}
