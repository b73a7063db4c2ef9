package integration

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// boxReport is what --report json writes, as far as the tests read it.
type boxReport struct {
	Status   int    `json:"status"`
	Signal   string `json:"signal"`
	TimedOut bool   `json:"timedOut"`
	Wall     int64  `json:"wall"`
	CPU      struct {
		User, System int64
		Throttled    *int64
		Whole        bool
	} `json:"cpu"`
	Memory struct {
		Peak, Limit uint64
		OOMKills    uint64 `json:"oomKills"`
		OOMBy       string `json:"oomBy"`
	} `json:"memory"`
	Pids struct{ Limit, Refused uint64 } `json:"pids"`
}

// box prepares a box whose current directory is the test's.
func box(b *harness.Box, args ...string) *harness.Command {
	c := b.Command(append([]string{"box"}, args...)...)
	c.Dir = b.Dir
	return c
}

// report runs a box and reads what it says of itself.
func report(t *testing.T, b *harness.Box, code int, args ...string) (r boxReport) {
	t.Helper()
	file := b.Path("report")
	box(b, append([]string{"--report", "json:" + file}, args...)...).Run().Exits(t, code)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	harness.Decode(t, string(text), &r)
	return r
}

func TestBoxDiscardsWrites(t *testing.T) {
	b := harness.NewForAnyone(t)
	file := b.WriteFile("file", "before\n", 0o644)
	b.WriteFile("sub/other", "before\n", 0o644)
	// A directory beside the current one is overlaid, the current one is as it is.
	c := box(b, "--", "/bin/sh", "-c", `
		cat sub/other; echo after > sub/other 2>/dev/null || echo refused
		for dir in /etc /usr "$HOME"; do echo made > $dir/berth-box-test && cat $dir/berth-box-test; done
		echo t > /tmp/berth-box-test && echo r > /run/berth-box-test && cat /tmp/berth-box-test`)
	c.Env = []string{"HOME=/usr/share"}
	r := c.Run().OK(t)
	if want := "before\nrefused\nmade\nmade\nmade\nt\n"; r.Stdout != want {
		t.Errorf("it printed %q, want %q\n%s", r.Stdout, want, r.Stderr)
	}
	for _, name := range []string{"/etc/berth-box-test", "/usr/berth-box-test", "/usr/share/berth-box-test", "/tmp/berth-box-test", "/run/berth-box-test"} {
		if _, err := os.Lstat(name); err == nil {
			t.Errorf("%s is on the host", name)
		}
	}
	if text, err := os.ReadFile(file); string(text) != "before\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestBoxShowsPaths(t *testing.T) {
	b := harness.NewForAnyone(t)
	b.WriteFile("data/in", "in\n", 0o644)
	b.WriteFile("out/.keep", "", 0o644)
	r := box(b, "--ro", "data:/data", "--rw", "out", "--tmp", "/usr/share", "--", "/bin/sh", "-c",
		"cat /data/in; touch /data/x 2>/dev/null || echo refused; echo kept > out/result; ls /usr/share | wc -l").Run().OK(t)
	if want := "in\nrefused\n0\n"; r.Stdout != want {
		t.Errorf("%q, want %q", r.Stdout, want)
	}
	if text, err := os.ReadFile(b.Path("out/result")); string(text) != "kept\n" {
		t.Errorf("what was written to --rw is %q, %v", text, err)
	}
}

func TestBoxRootfs(t *testing.T) {
	b := harness.New(t)
	c := b.Container() // for its root file system only
	r := box(b, "--rootfs", c.Rootfs(), "--", "/bin/sh", "-c", "echo x > /etc/new; cat /etc/new; pwd").Run().OK(t)
	if want := "x\n/\n"; r.Stdout != want {
		t.Errorf("%q, want %q", r.Stdout, want)
	}
	if _, err := os.Lstat(c.Path("etc/new")); err == nil {
		t.Error("the folder was written to")
	}
}

// What shuts the box off from the machine.
func TestBoxIsolates(t *testing.T) {
	b := harness.NewForAnyone(t)
	c := box(b, "--env", "PASSED", "--env", "SET=value", "--", "/bin/sh", "-c",
		`echo $PASSED $SET $SECRET; echo /proc/[0-9]*; cat /proc/net/dev | tail -n +3 | cut -d: -f1; grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status`)
	c.Env = []string{"PASSED=passed", "SECRET=secret"}
	r := c.Run().OK(t)
	lines := r.Lines()
	if len(lines) != 5 || lines[0] != "passed value" || len(strings.Fields(lines[1])) > 4 || strings.TrimSpace(lines[2]) != "lo" ||
		lines[3] != "NoNewPrivs:\t1" || lines[4] != "Seccomp:\t2" {
		t.Errorf("%q", lines)
	}
	// Nothing of the host's mounts is left, not even beyond the root.
	r = box(b, "--", "/bin/sh", "-c", `awk '$5 == "/"' /proc/self/mountinfo | wc -l; awk '/ - (cgroup|cgroup2|ext4|xfs|btrfs) /' /proc/self/mountinfo | grep -v " $PWD " | wc -l; test /.. -ef / && echo same`).Run().OK(t)
	want := "1\n0\nsame\n"
	if os.Geteuid() != 0 {
		// An ordinary user is shown the host's /sys, with what is mounted there.
		_, rest, _ := strings.Cut(r.Stdout, "\n")
		_, rest, _ = strings.Cut(rest, "\n")
		r.Stdout, want = r.Stdout[:2]+rest, "1\nsame\n"
	}
	if r.Stdout != want {
		t.Errorf("mounts on the root, of the host, and beyond: %q", r.Stdout)
	}
	box(b, "--seccomp", "none", "--", "/bin/grep", "-q", "Seccomp:\t0", "/proc/self/status").Run().OK(t)
}

func TestBoxHostNetwork(t *testing.T) {
	b := harness.NewForAnyone(t)
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if r := box(b, "--net", "host", "--", "/bin/readlink", "/proc/self/ns/net").Run().OK(t); r.Stdout != own+"\n" {
		t.Errorf("%q, want the host's %s", r.Stdout, own)
	}
}

func TestBoxUser(t *testing.T) {
	b := harness.NewForAnyone(t)
	for _, test := range [][2]string{{"12345:23456", "12345 23456"}, {"root", "0 0"}, {"0", "0 0"}} {
		r := box(b, "--user", test[0], "--", "/bin/sh", "-c", "echo $(id -u) $(id -g)").Run().OK(t)
		if r.Stdout != test[1]+"\n" {
			t.Errorf("--user %s: %q", test[0], r.Stdout)
		}
	}
	box(b, "--user", "nobody-of-that-name", "--", "/bin/true").Run().Exits(t, 125)
}

// A command is not process 1, so that signals do to it what they do outside.
func TestBoxStatus(t *testing.T) {
	b := harness.NewForAnyone(t)
	for _, test := range []struct {
		script string
		code   int
	}{{"exit 0", 0}, {"exit 7", 7}, {"kill -TERM $$", 128 + 15}, {"kill -ABRT $$", 128 + 6}, {"kill -KILL $$", 128 + 9}} {
		box(b, "--", "/bin/sh", "-c", test.script).Run().Exits(t, test.code)
	}
	box(b, "--", "no-such-command").Run().Exits(t, 127)
	box(b, "--", "/etc/passwd").Run().Exits(t, 126)
	box(b, "--ro", "/no/such/path", "--", "/bin/true").Run().Exits(t, 125)
	box(b, "--no-such-option").Run().Exits(t, 125)
}

func TestBoxErrorsAreOneSentence(t *testing.T) {
	b := harness.NewForAnyone(t)
	for _, test := range [][]string{
		{"--", "no-such-command"}, {"--user", "nobody-of-that-name", "--", "true"}, {"--rootfs", "/etc/passwd", "--", "true"}, {"--memory", "4096", "--", "true"},
	} {
		r := box(b, test...).Run()
		if strings.Count(r.Stderr, "\n") != 1 || !strings.HasPrefix(r.Stderr, "berth box: ") || strings.Contains(r.Stderr, "config.json") {
			t.Errorf("%q: %q", test, r.Stderr)
		}
	}
}

func TestBoxTimeout(t *testing.T) {
	b := harness.NewForAnyone(t)
	// Also what runs in the background, and ignores what it can.
	r := report(t, b, 124, "--timeout", "200ms", "--", "/bin/sh", "-c", "trap '' TERM INT HUP; sleep 100000 & sleep 100000")
	if !r.TimedOut || r.Status != 124 || r.Wall < 200e6 {
		t.Errorf("%+v", r)
	}
	quick := []string{"--timeout", "100ms", "--", "/bin/sleep", "100000"}
	if said := box(b, quick...).Run().Exits(t, 124).Stderr; !strings.HasPrefix(said, "berth box: killed by --timeout after ") || strings.Count(said, "\n") != 1 {
		t.Errorf("without a report: %q", said)
	}
	if said := box(b, append([]string{"--report", "none"}, quick...)...).Run().Exits(t, 124).Stderr; said != "" {
		t.Errorf("with --report none: %q", said)
	}
}

func TestBoxSignals(t *testing.T) {
	b := harness.NewForAnyone(t)
	for _, test := range []struct {
		signal unix.Signal
		code   int
	}{{unix.SIGINT, 128 + 2}, {unix.SIGTERM, 128 + 15}, {unix.SIGHUP, 128 + 1}} {
		out, w := b.Pipe()
		c := box(b, "--", "/bin/sh", "-c", "echo ready; exec sleep 100000")
		c.Stdout = w
		running := c.Start()
		w.Close()
		out.Until("ready\n")
		running.Signal(test.signal)
		running.Wait().Exits(t, test.code)
	}
}

// Killed in whatever way, a box leaves no process behind.
func TestBoxDiesWithItsRuntime(t *testing.T) {
	b := harness.NewForAnyone(t)
	out, w := b.Pipe()
	c := box(b, "--", "/bin/sh", "-c", "sleep 100000 & echo ready; sleep 100000")
	c.Stdout = w
	running := c.Start()
	w.Close()
	out.Until("ready\n")
	ids := strings.Fields(b.Berth("list", "-q").OK(t).Stdout)
	if len(ids) != 1 || !strings.HasPrefix(ids[0], "box-") {
		t.Fatalf("%q", ids)
	}
	var state struct{ Pid int }
	harness.Decode(t, b.Berth("state", ids[0]).OK(t).Stdout, &state)
	running.Signal(unix.SIGKILL)
	running.Wait()
	out.All() // the end comes when the last one of the box has gone
	// The test is their parent now. The namespace's first process ends after all others.
	if _, err := unix.Wait4(state.Pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	b.ReapOrphans()
	b.Berth("delete", "--force", ids[0]).OK(t)
}

func TestBoxLimitsMemory(t *testing.T) {
	harness.Controller(t, "memory")
	b := harness.New(t)
	r := report(t, b, 137, "--memory", "20M", "--", "/usr/bin/tail", "/dev/zero")
	if r.Memory.OOMKills == 0 || !strings.HasPrefix(r.Memory.OOMBy, "--memory") || r.Memory.Limit != 20<<20 || r.Memory.Peak == 0 || r.Memory.Peak > 20<<20 || r.Signal != "SIGKILL" {
		t.Errorf("%+v", r)
	}
	// What is written to the root is the box's memory as well. Who asks for no report is told why
	// it ended.
	full := box(b, "--memory", "20M", "--", "/bin/sh", "-c", "head -c 40000000 /dev/zero > /usr/big").Run().Exits(t, 137)
	if !strings.HasSuffix(full.Stderr, "OOM-killed, by --memory 20.0M\n") {
		t.Errorf("%q", full.Stderr)
	}
}

func TestBoxLimitsProcesses(t *testing.T) {
	harness.Controller(t, "pids")
	b := harness.New(t)
	r := report(t, b, 0, "--pids", "5", "--", "/bin/sh", "-c", "(for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done) 2>/dev/null; true")
	if r.Pids.Limit != 5 || r.Pids.Refused == 0 {
		t.Errorf("%+v", r)
	}
}

func TestBoxLimitsProcessors(t *testing.T) {
	harness.Controller(t, "cpu")
	b := harness.New(t)
	r := report(t, b, 124, "--cpus", "0.1", "--timeout", "1s", "--", "/bin/sh", "-c", "while :; do :; done")
	if r.CPU.Throttled == nil || *r.CPU.Throttled == 0 || !r.CPU.Whole {
		t.Errorf("%+v", r)
	}
	if used := r.CPU.User + r.CPU.System; used > r.Wall/2 {
		t.Errorf("it used %d of %d ns", used, r.Wall)
	}
}

func TestBoxKeep(t *testing.T) {
	b := harness.New(t)
	r := box(b, "--keep", "--", "/bin/true").Run().OK(t)
	fields := strings.Fields(r.Stderr)
	if len(fields) < 5 {
		t.Fatalf("%q", r.Stderr)
	}
	id := strings.TrimSuffix(fields[4], ";")
	b.Berth("state", id).OK(t)
	b.Berth("delete", id).OK(t)
}

func TestBoxTerminal(t *testing.T) {
	b := harness.NewForAnyone(t)
	r := box(b, "--", "/bin/sh", "-c", "test -t 0 || echo none; cat").Run().OK(t)
	if r.Stdout != "none\n" {
		t.Errorf("%q", r.Stdout)
	}
}

// An ordinary user without a cgroup of their own gets no limits, and is told so.
func TestBoxRefusesLimitsThatItCannotSet(t *testing.T) {
	if os.Geteuid() == 0 {
		harness.Skip(t, "needs an ordinary user")
	}
	b := harness.NewForAnyone(t)
	r := box(b, "--memory", "100M", "--", "/bin/true").Run()
	if r.Code != 0 && (r.Code != 125 || !strings.Contains(r.Stderr, wayToLimits(t))) {
		t.Errorf("%d: %q", r.Code, r.Stderr)
	}
}
