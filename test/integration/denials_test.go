package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// denied is what a box's report says of refused calls.
type denied struct {
	Status int
	Denied []struct {
		Call, Errno, Rule, Program, AllowedWith string
		Count                                   int
	}
}

// A box names what its profile refuses, once per kind, and the calls get the errno that they would.
func TestBoxNamesDenials(t *testing.T) {
	b := harness.NewForAnyone(t)
	call := func(number, arg int) string { return fmt.Sprintf("syscall=%d,%d", number, arg) }
	user, net := call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), call(unix.SYS_UNSHARE, unix.CLONE_NEWNET)
	args := []string{"--ro", harness.Helper(t), "--", harness.Helper(t), "try", user, net, user}
	file := b.Path("report")
	out := box(b, append([]string{"--report", "json:" + file}, args...)...).Run().OK(t)
	got := harness.ParseAttempts(t, out.Stdout)
	harness.Refused(t, got, user, "EPERM")
	harness.Refused(t, got, net, "EPERM")
	var r denied
	harness.Decode(t, readFile(t, file), &r)
	if len(r.Denied) != 2 {
		t.Fatalf("%+v", r)
	}
	for i, want := range []string{"unshare(CLONE_NEWUSER)", "unshare(CLONE_NEWNET)"} {
		if d := r.Denied[i]; d.Call != want || d.Errno != "EPERM" || d.Rule != "/linux/seccomp/defaultAction" || d.Program != "inside" ||
			d.AllowedWith != "CAP_SYS_ADMIN" || d.Count < 2-i {
			t.Errorf("%+v, want %s", d, want)
		}
	}
	args = append([]string{"--explain-denials=false", "--report", "json:" + file}, args...)
	harness.Refused(t, harness.ParseAttempts(t, box(b, args...).Run().OK(t).Stdout), user, "EPERM")
	r = denied{}
	harness.Decode(t, readFile(t, file), &r)
	if len(r.Denied) != 0 {
		t.Errorf("without: %+v", r)
	}
	// Without a report, only a command that fails has it told why, and a few kinds at most.
	fails := box(b, "--", "sh", "-c", "sleep 1.2; unshare --user true || exit 3").Run().Exits(t, 3)
	if !strings.Contains(fails.Stderr, "berth box: denied: unshare(CLONE_NEWUSER) by unshare[") || !strings.Contains(fails.Stderr, "(allowed with CAP_SYS_ADMIN)") {
		t.Errorf("%s", fails.Stderr)
	}
	if fine := box(b, "--", "sh", "-c", "unshare --user true 2>&1 || true").Run().OK(t); fine.Stderr != "" {
		t.Errorf("a command that succeeds has %q told", fine.Stderr)
	}
}

// profileOf refuses two calls, one by an errno of its own.
func profileOf(c *harness.Container) {
	errno := uint(95)
	c.Spec.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"getpriority"}, Action: specs.ActErrno},
		{Names: []string{"personality"}, Action: specs.ActErrno, ErrnoRet: &errno, Args: []specs.LinuxSeccompArg{{Index: 0, Value: 8, Op: specs.OpEqualTo}}},
	}}
}

// run and exec name what the config's profile refuses, if asked, with the errno that it has.
func TestRunAndExecNameDenials(t *testing.T) {
	refused, allowed := fmt.Sprintf("syscall=%d,8", unix.SYS_PERSONALITY), fmt.Sprintf("syscall=%d,4294967295", unix.SYS_PERSONALITY)
	const told = "denied: personality(PER_LINUX32) by inside["
	const rule = "ENOTSUP, seccomp rule /linux/seccomp/syscalls/1"
	check := func(t *testing.T, r harness.Result) {
		t.Helper()
		got := harness.ParseAttempts(t, r.Stdout)
		harness.Refused(t, got, refused, "EOPNOTSUPP", "ENOTSUP")
		harness.Allowed(t, got, allowed)
		if !strings.Contains(r.Stderr, told) || !strings.Contains(r.Stderr, rule) || strings.Contains(r.Stderr, "getpriority") {
			t.Errorf("it says %q", r.Stderr)
		}
	}
	t.Run("run", func(t *testing.T) {
		b := harness.New(t)
		c := b.Container("/inside", "try", refused, allowed)
		profileOf(c)
		check(t, c.Run("--explain-denials").OK(t))
	})
	t.Run("kept", func(t *testing.T) {
		b := harness.New(t)
		c := b.Container("/inside", "try", refused, refused)
		profileOf(c)
		c.Run("--explain-denials", "--keep").OK(t)
		if text := b.Berth("inspect", c.ID).OK(t).Stdout; strings.Count(text, "personality(PER_LINUX32) by inside[") != 1 || !strings.Contains(text, rule) {
			t.Errorf("inspect says %s", text)
		}
		var seen struct {
			Denied []struct{ Call, Program, Errno, Rule string }
		}
		if err := json.Unmarshal([]byte(b.Berth("inspect", "--json", c.ID).OK(t).Stdout), &seen); err != nil {
			t.Fatal(err)
		}
		if len(seen.Denied) != 1 || seen.Denied[0].Rule != "/linux/seccomp/syscalls/1" || seen.Denied[0].Errno != "ENOTSUP" || seen.Denied[0].Program != "inside" {
			t.Errorf("%+v", seen)
		}
		c.Delete()
	})
	t.Run("events", func(t *testing.T) {
		b := harness.New(t)
		c := b.Container("/inside", "hang")
		profileOf(c)
		c.RunDetached()
		// One from before, which is no news, is the sign that the file is there.
		b.Berth("exec", "--explain-denials", c.ID, "/inside", "try", fmt.Sprintf("syscall=%d", unix.SYS_GETPRIORITY)).OK(t)
		events, w := b.Pipe()
		watch := b.Command("events", "--interval", "20ms", c.ID)
		watch.Stdout = w
		running := watch.Start()
		w.Close()
		events.Until(`"type":"stats"`) // it watches
		b.Berth("exec", "--explain-denials", c.ID, "/inside", "try", refused).OK(t)
		if before := events.Until(`"type":"denied"`); strings.Contains(before, "getpriority") {
			t.Errorf("events tells of what was before it: %s", before)
		}
		if line := events.Until("}"); !strings.Contains(line, `"call":"personality(PER_LINUX32)"`) || !strings.Contains(line, `"rule":"/linux/seccomp/syscalls/1"`) {
			t.Errorf("events says %s", line)
		}
		if text := b.Berth("inspect", c.ID).OK(t).Stdout; !strings.Contains(text, "getpriority") || !strings.Contains(text, "personality") {
			t.Errorf("inspect says %s", text)
		}
		c.Delete("--force")
		running.Wait().OK(t)
	})
	t.Run("killed", func(t *testing.T) {
		b := harness.New(t)
		c := b.Container("/inside", "try", refused)
		profileOf(c)
		c.Spec.Linux.Seccomp.Syscalls[1].Action, c.Spec.Linux.Seccomp.Syscalls[1].ErrnoRet = specs.ActKillProcess, nil
		const told = "killed by SIGSYS: the seccomp profile kills for personality (/linux/seccomp/syscalls/1)"
		if r := c.Run("--keep").Exits(t, 128+int(unix.SIGSYS)); !strings.Contains(r.Stderr, told) {
			t.Errorf("run says %q", r.Stderr)
		}
		if text := b.Berth("inspect", c.ID).OK(t).Stdout; !strings.Contains(text, told) {
			t.Errorf("inspect says %s", text)
		}
		c.Delete()
		hanging := b.Container("/inside", "hang")
		hanging.Spec.Linux.Seccomp = c.Spec.Linux.Seccomp
		hanging.RunDetached()
		if r := b.Berth("exec", hanging.ID, "/inside", "try", refused).Exits(t, 128+int(unix.SIGSYS)); !strings.Contains(r.Stderr, told) {
			t.Errorf("exec says %q", r.Stderr)
		}
		hanging.Delete("--force")
	})
	t.Run("exec", func(t *testing.T) {
		b := harness.New(t)
		c := b.Container("/inside", "hang")
		profileOf(c)
		c.RunDetached()
		check(t, b.Berth("exec", "--explain-denials", c.ID, "/inside", "try", refused, allowed).OK(t))
		r := b.Berth("exec", "--explain-denials", "--detach", c.ID, "/inside", "try").Exits(t, 255)
		if !strings.Contains(r.Stderr, "--explain-denials is for the foreground") {
			t.Errorf("%s", r.Stderr)
		}
		c.Delete("--force")
	})
}

// A profile that refuses what hands the listener over is watched all the same; one that has a
// listener of its own is not, and the program runs as ever.
func TestDenialsOfNarrowProfiles(t *testing.T) {
	b := harness.NewForAnyone(t)
	file := b.WriteFile("profile.json", `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["sendmsg", "read", "getpriority"], "action": "SCMP_ACT_ERRNO"}]}`, 0o644)
	report := b.Path("report")
	send, priority := fmt.Sprintf("syscall=%d", unix.SYS_SENDMSG), fmt.Sprintf("syscall=%d", unix.SYS_GETPRIORITY)
	helper := harness.Helper(t)
	r := box(b, "--seccomp", file, "--report", "json:"+report, "--ro", helper, "--", helper, "try", priority, send).Run().OK(t)
	got := harness.ParseAttempts(t, r.Stdout)
	harness.Refused(t, got, priority, "EPERM")
	harness.Refused(t, got, send, "EPERM")
	if strings.Contains(r.Stderr, "can't be named") {
		t.Errorf("%s", r.Stderr)
	}
	var d denied
	harness.Decode(t, readFile(t, report), &d)
	var calls []string
	for _, one := range d.Denied {
		calls = append(calls, one.Call)
	}
	for _, want := range []string{"getpriority", "sendmsg"} {
		if !slices.ContainsFunc(calls, func(call string) bool { return strings.HasPrefix(call, want) }) {
			t.Errorf("no %s among %q", want, calls)
		}
	}
	file = b.WriteFile("profile.json", `{"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/no/such/socket", "syscalls": [{"names": ["getpriority"], "action": "SCMP_ACT_NOTIFY"}]}`, 0o644)
	r = box(b, "--seccomp", file, "--", "true").Run().Exits(t, 125)
	if !strings.Contains(r.Stderr, "can't be named: the profile uses SCMP_ACT_NOTIFY") {
		t.Errorf("%s", r.Stderr)
	}
}
