package integration

import (
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

func TestArgsAndEnvironment(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	args := []string{"/inside", "look", "", "two words", "new\nline", "ünïcode", "\"quoted\""}
	c.Spec.Process.Args = args
	c.Spec.Process.Env = []string{"PATH=/bin", "EMPTY=", "EQUALS=a=b=c", "LINES=a\nb", "HOME=/x"}
	v := harness.ParseView(t, c.Run().OK(t).Stdout)
	if !slices.Equal(v.Args, args) {
		t.Errorf("arguments %q", v.Args)
	}
	if !slices.Equal(v.Env, c.Spec.Process.Env) {
		t.Errorf("environment %q", v.Env)
	}
}

// The program is looked up in the container's PATH, not in the engine's.
func TestLookupInPath(t *testing.T) {
	b := harness.New(t)
	c := b.Container("tool", "arg")
	c.WriteFile("opt/first/tool", "not executable", 0o644)
	c.WriteFile("opt/second/tool", "#!/bin/sh\necho second $1\n", 0o755)
	c.WriteFile("opt/third/tool", "#!/bin/sh\necho third\n", 0o755)
	c.Spec.Process.Env = []string{"PATH=/opt/none:/opt/first:/opt/second:/opt/third"}
	if r := c.Run().OK(t); r.Stdout != "second arg\n" {
		t.Errorf("%q", r.Stdout)
	}
}

// A directory of that name is passed over, and no program where there is nothing else.
func TestLookupPassesOverFolders(t *testing.T) {
	b := harness.New(t)
	c := b.Container("tool")
	c.WriteFile("opt/first/tool/x", "", 0o644)
	c.WriteFile("opt/second/tool", "#!/bin/sh\necho second\n", 0o755)
	c.WriteFile("opt/third/tool/x", "", 0o644)
	c.Spec.Process.Env = []string{"PATH=/opt/first:/opt/second:/opt/third"}
	if r := c.Run().OK(t); r.Stdout != "second\n" {
		t.Errorf("%q", r.Stdout)
	}
	for _, path := range []string{"/opt/first", "/opt/first:/opt/third", "/opt/first:/none"} {
		c.Spec.Process.Env = []string{"PATH=" + path}
		c.Run().Fails(t, "tool", "executable file not found in $PATH")
	}
}

// Of a variable that is given twice the last value holds, for every reader: exec --env changes what
// the config says.
func TestVariableTwice(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	c.Spec.Process.Env = []string{"A=1", "PATH=/bin", "A=2"}
	c.RunDetached()
	text, err := os.ReadFile(procPath(c.PID, "environ"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(string(text), "\x00"); !slices.Contains(got, "A=2") || slices.Contains(got, "A=1") {
		t.Errorf("environment %q", got)
	}
	if v := lookBy(c, "--env", "A=3"); !slices.Contains(v.Env, "A=3") || slices.Contains(v.Env, "A=2") {
		t.Errorf("exec: environment %q", v.Env)
	}
}

// A name with a slash is not a name for PATH: it is relative to the working directory.
func TestRelativeProgram(t *testing.T) {
	b := harness.New(t)
	c := b.Container("./tool")
	c.WriteFile("opt/tool", "#!/bin/sh\npwd\n", 0o755)
	c.Spec.Process.Cwd = "/opt"
	if r := c.Run().OK(t); r.Stdout != "/opt\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func TestCwd(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Process.Cwd = "/home/user"
	v := c.Look()
	if v.Cwd != "/home/user" {
		t.Errorf("%q", v.Cwd)
	}
}

// As runc does, a working directory that isn't there is made, for root.
func TestCwdIsMade(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Process.Cwd = "/not/yet/there"
	if v := c.Look(); v.Cwd != "/not/yet/there" {
		t.Errorf("%q", v.Cwd)
	}
}

// A working directory that only root may enter is entered before the user is changed, or refused:
// both are seen in the wild. What must not be is a process somewhere else.
func TestCwdThatTheUserMayNotEnter(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Process.Cwd = "/closed"
	c.Spec.Process.User.UID = 1000
	c.Spec.Process.Args = []string{"/inside", "look"}
	if err := os.Mkdir(c.Path("closed"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := c.Run()
	if r.Code != 0 {
		r.Fails(t, "/closed", "permission denied")
	} else if v := harness.ParseView(t, r.Stdout); v.Cwd != "/closed" {
		t.Errorf("%q", v.Cwd)
	}
}

func TestCwdMustBeAFolder(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Spec.Process.Cwd = "/etc/passwd"
	c.Run().Fails(t, "/etc/passwd", "not a directory")
}

// A descriptor of the host's could be a way out: the working directory is checked to be in the
// container.
func TestCwdByDescriptorIsRefused(t *testing.T) {
	for fd := 3; fd < 20; fd++ {
		b := harness.New(t)
		c := b.Container("/inside", "look")
		c.Spec.Process.Cwd = "/proc/self/fd/" + strconv.Itoa(fd)
		r := c.Run()
		if r.Code == 0 {
			if v := harness.ParseView(t, r.Stdout); !strings.HasPrefix(v.Cwd, "/proc") {
				t.Errorf("descriptor %d: the process is in %q", fd, v.Cwd)
			}
		}
	}
}

func TestNoNewPrivileges(t *testing.T) {
	for _, set := range []bool{true, false} {
		b := harness.New(t)
		c := b.Container()
		c.Spec.Process.NoNewPrivileges = set
		want := map[bool]string{true: "1", false: "0"}[set]
		if got := c.Look().Status["NoNewPrivs"]; got != want {
			t.Errorf("noNewPrivileges %v: %s", set, got)
		}
	}
}

func TestOOMScoreAdj(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Process.OOMScoreAdj = ptr(321)
	if got := c.Look().OOMScore; got != "321" {
		t.Errorf("%s", got)
	}
}

// Not given, it stays as the caller has it.
func TestOOMScoreAdjIsInherited(t *testing.T) {
	b := harness.New(t)
	own := strings.TrimSpace(readFile(t, "/proc/self/oom_score_adj"))
	if got := b.Container().Look().OOMScore; got != own {
		t.Errorf("%s, the caller's is %s", got, own)
	}
}

func TestOOMScoreAdjOutOfRange(t *testing.T) {
	for _, value := range []int{-1001, 1001} {
		b := harness.New(t)
		c := b.Container("/bin/true")
		c.Spec.Process.OOMScoreAdj = ptr(value)
		c.Run().Fails(t, "/process/oomScoreAdj")
	}
}

func TestRlimits(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	want := map[string][2]uint64{
		"RLIMIT_CORE": {0, 0}, "RLIMIT_STACK": {1 << 20, 4 << 20}, "RLIMIT_FSIZE": {1 << 30, 1 << 31}, "RLIMIT_NPROC": {500, 600},
		"RLIMIT_SIGPENDING": {100, 200}, "RLIMIT_CPU": {1000, 2000}, "RLIMIT_MEMLOCK": {4096, 8192}, "RLIMIT_MSGQUEUE": {10000, 20000},
		"RLIMIT_AS": {1 << 40, 1 << 41}, "RLIMIT_DATA": {1 << 39, 1 << 40}, "RLIMIT_RSS": {1 << 30, 1 << 30}, "RLIMIT_LOCKS": {10, 20},
		"RLIMIT_RTTIME": {1000, 2000}, "RLIMIT_RTPRIO": {0, 0}, "RLIMIT_NICE": {0, 0},
	}
	for name, l := range want {
		c.Spec.Process.Rlimits = append(c.Spec.Process.Rlimits, specs.POSIXRlimit{Type: name, Soft: l[0], Hard: l[1]})
	}
	v := c.Look()
	for name, l := range want {
		if got := v.Limits[name]; got.Soft != l[0] || got.Hard != l[1] {
			t.Errorf("%s: %+v, want %v", name, got, l)
		}
	}
}

// By the shell: a Go program raises its own soft limit of open files.
func TestRlimitOpenFiles(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "ulimit -Sn; ulimit -Hn")
	c.Spec.Process.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: 77, Hard: 99}}
	if r := c.Run().OK(t); r.Stdout != "77\n99\n" {
		t.Errorf("%q", r.Stdout)
	}
}

// The engine, a Go program too, must hand on the limit that it was called with, not the one that Go
// raised.
func TestRlimitOpenFilesIsInherited(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "ulimit -Sn; ulimit -Hn")
	cmd := c.Command("run", nil)
	cmd.Wrap = []string{"/bin/sh", "-c", `ulimit -Sn 200 && ulimit -Hn 300 && exec "$0" "$@"`}
	if r := cmd.Run().OK(t); r.Stdout != "200\n300\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func TestRlimitsWrong(t *testing.T) {
	for name, limits := range map[string][]specs.POSIXRlimit{
		"unknown":         {{Type: "RLIMIT_NOSUCH", Soft: 1, Hard: 1}},
		"twice":           {{Type: "RLIMIT_CORE", Soft: 1, Hard: 1}, {Type: "RLIMIT_CORE", Soft: 2, Hard: 2}},
		"soft above hard": {{Type: "RLIMIT_CORE", Soft: 2, Hard: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true")
			c.Spec.Process.Rlimits = limits
			c.Run().Fails(t, "/process/rlimits/")
		})
	}
}

// The process starts with no signal blocked and none ignored, whatever the engine's caller or its
// runtime does.
func TestSignalsAreAsAtBirth(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/cat", "/proc/self/status")
	r := c.Run().OK(t)
	for _, field := range []string{"SigBlk", "SigIgn"} {
		if got := statusField(r.Stdout, field); strings.Trim(got, "0") != "" {
			t.Errorf("%s: %s", field, got)
		}
	}
}

func TestSessionKeyring(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	first := c.Look().Keyring
	// The engine's caller has a keyring of its own, which the container would otherwise inherit.
	c.Spec.Process.Args = []string{"/inside", "look"}
	own := sessionKeyring(t)
	if first == own {
		t.Errorf("the session keyring is the caller's, %q", own)
	}
	if v := harness.ParseView(t, c.Run("--no-new-keyring").OK(t).Stdout); v.Keyring != own {
		t.Errorf("with --no-new-keyring: %q, the caller's is %q", v.Keyring, own)
	}
	c.Spec.Process.Args = []string{"/inside", "hang"}
	c.RunDetached("--no-new-keyring")
	if v := harness.ParseView(t, c.Exec(nil, "/inside", "look").OK(t).Stdout); v.Keyring != own {
		t.Errorf("exec after --no-new-keyring: %q, the caller's is %q", v.Keyring, own)
	}
}

// sessionKeyring describes the one that this process's children inherit.
func sessionKeyring(t *testing.T) string {
	t.Helper()
	out, err := exec.Command(harness.Helper(t), "look").Output()
	if err != nil {
		t.Fatal(err)
	}
	return harness.ParseView(t, string(out)).Keyring
}
