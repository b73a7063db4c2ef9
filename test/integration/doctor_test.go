package integration

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

type diagnosis struct {
	Healthy  bool `json:"healthy"`
	For      string
	Findings []struct {
		Check, State, Found string
		Fix                 []struct{ Run, File, Content string }
	}
}

// The exit status says whether the caller lacks something, and each gap has a way out.
func TestDoctor(t *testing.T) {
	b := harness.New(t)
	for _, test := range []struct {
		whom string
		attr *syscall.SysProcAttr
	}{
		{"root", nil},
		{"users", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}},
	} {
		cmd := b.Command("doctor", "--json")
		cmd.Bare, cmd.Attr = true, test.attr
		r := cmd.Run()
		var d diagnosis
		harness.Decode(t, r.Stdout, &d)
		if d.For != test.whom || d.Healthy != (r.Code == 0) || r.Code > 1 || len(d.Findings) < 15 || r.Stderr != "" {
			t.Errorf("%s: status %d, %+v, %q", test.whom, r.Code, d, r.Stderr)
		}
		gaps := 0
		for _, f := range d.Findings {
			if f.State == "gap" {
				gaps++
				if len(f.Fix) == 0 {
					t.Errorf("%s: a gap without a way out: %+v", test.whom, f)
				}
			}
		}
		if d.Healthy != (gaps == 0) {
			t.Errorf("%s: %d gaps, healthy %t", test.whom, gaps, d.Healthy)
		}
		cmd = b.Command("doctor")
		cmd.Bare, cmd.Attr = true, test.attr
		if text := cmd.Run().Exits(t, r.Code).Stdout; strings.Count("\n"+text, "\ngap ") != gaps {
			t.Errorf("%s: %d gaps told to a program, and to a person:\n%s", test.whom, gaps, text)
		}
	}
}

// An ordinary user to whom all has been given is told so, and told what is missing as soon as
// something is.
func TestDoctorOfUser(t *testing.T) {
	if os.Geteuid() == 0 {
		harness.Skip(t, "needs to be run by an ordinary user")
	}
	b := withSystemd(t)
	needV2(t)
	uid := strconv.Itoa(os.Getuid())
	delegated, err := os.ReadFile("/sys/fs/cgroup/user.slice/user-" + uid + ".slice/user@" + uid + ".service/cgroup.controllers")
	must(t, err)
	for _, name := range []string{"cpu", "cpuset", "io", "memory", "pids"} {
		if !slices.Contains(strings.Fields(string(delegated)), name) {
			harness.Skip(t, "needs the controller %s delegated to the systemd of the user, which has %s", name, delegated)
		}
	}
	ask := func(env ...string) (diagnosis, int) {
		t.Helper()
		cmd := b.Command("doctor", "--json")
		cmd.Bare, cmd.Env = true, env
		r := cmd.Run()
		var d diagnosis
		harness.Decode(t, r.Stdout, &d)
		return d, r.Code
	}
	if d, code := ask(); code != 0 || !d.Healthy {
		t.Errorf("status %d: %+v", code, d)
	}
	d, code := ask("XDG_RUNTIME_DIR=")
	if code != 1 || d.Healthy {
		t.Errorf("without XDG_RUNTIME_DIR: status %d: %+v", code, d)
	}
	for _, f := range d.Findings {
		if f.State == "gap" && f.Check != "XDG_RUNTIME_DIR" && f.Check != "bus" {
			t.Errorf("without XDG_RUNTIME_DIR: %+v", f)
		}
	}
}

func TestDoctorColours(t *testing.T) {
	b := harness.New(t)
	status := b.Berth("doctor").Code
	for _, test := range []struct {
		env     []string
		colours bool
	}{
		{[]string{"TERM=xterm", "NO_COLOR="}, true}, {[]string{"TERM=xterm", "NO_COLOR=1"}, false}, {[]string{"TERM=dumb", "NO_COLOR="}, false},
	} {
		terminal := b.Terminal()
		cmd := b.Command("doctor")
		cmd.Stdout, cmd.Env = terminal.Slave, test.env
		running := cmd.Start()
		text := terminal.Until("kernel: ")
		running.Wait().Exits(t, status)
		if got := strings.Contains(text, "\x1b["); got != test.colours {
			t.Errorf("%q: colours %t", test.env, got)
		}
	}
	// Not a terminal: no colours, whatever TERM says.
	out, err := os.Create(b.Path("out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := b.Command("doctor")
	cmd.Stdout, cmd.Env = out, []string{"TERM=xterm"}
	cmd.Run().Exits(t, status)
	if text, err := os.ReadFile(out.Name()); err != nil || strings.Contains(string(text), "\x1b") {
		t.Errorf("in a file: %q, %v", text, err)
	}
}
