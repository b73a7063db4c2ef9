package attacks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

// tracer is a container whose process takes over whatever appears beside it.
type tracer struct {
	*harness.Container
	seen string
}

// newTracer prepares one.
func newTracer(b *harness.Box) *tracer {
	c := &tracer{Container: b.Container("/inside", "seize", "/seen/list")}
	c.seen = c.Path("seen")
	check(b.T, os.Mkdir(c.seen, 0o777))
	check(b.T, os.Chmod(c.seen, 0o777))
	sets := c.Spec.Process.Capabilities
	all := append([]string{"CAP_SYS_PTRACE"}, harness.DefaultCaps...)
	sets.Bounding, sets.Effective, sets.Permitted = all, all, all
	return c
}

// ready waits until the tracer looks for others.
func (c *tracer) ready() {
	c.Box.T.Helper()
	wait.Until(c.Box.T, "the tracer starts", func() bool {
		data, err := os.ReadFile(c.seen + "/list")
		return err == nil && len(data) > 0
	})
}

// stop ends the tracer and tells what it took over.
func (c *tracer) stop() []view.Seized {
	t := c.Box.T
	t.Helper()
	check(t, os.WriteFile(c.seen+"/list.stop", nil, 0o644))
	c.WaitExitOfTraced()
	data, err := os.ReadFile(c.seen + "/list")
	check(t, err)
	var list []view.Seized
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		var s view.Seized
		if line != "" && json.Unmarshal([]byte(line), &s) == nil {
			list = append(list, s)
		}
	}
	return list
}

// processFile writes a process object for exec.
func processFile(b *harness.Box, p *specs.Process) string {
	b.T.Helper()
	data, err := json.Marshal(p)
	check(b.T, err)
	return b.WriteFile("process.json", string(data), 0o644)
}

// A process of the container with CAP_SYS_PTRACE takes over what exec adds at the first instant
// that it is there. By then it is no more than the program will be: no capability, group, cgroup or
// descriptor besides. (runc 1.1 loses its exec's process with all capabilities.)
func TestSeizeExec(t *testing.T) {
	lenient := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"swapon"}, Action: specs.ActErrno}}}
	for name, with := range map[string]func(*specs.Process, *specs.Spec){
		"plain":        func(p *specs.Process, _ *specs.Spec) {},
		"no_new_privs": func(p *specs.Process, s *specs.Spec) { p.NoNewPrivileges = true; s.Linux.Seccomp = lenient },
		"filter":       func(p *specs.Process, s *specs.Spec) { s.Linux.Seccomp = lenient },
		// With the listener of a filter, what the filter refuses can be let through.
		"listener": func(p *specs.Process, s *specs.Spec) { s.Linux.Seccomp = lenient },
		"limit and groups": func(p *specs.Process, s *specs.Spec) {
			p.User.AdditionalGids = []uint32{4242}
			p.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NPROC", Soft: 3, Hard: 3}}
		},
		"user namespace": func(p *specs.Process, s *specs.Spec) {
			harness.UserNamespace(s)
			s.Linux.Resources = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := newTracer(b)
			p := &specs.Process{Args: []string{"/bin/true"}, Cwd: "/", User: specs.User{UID: 1000, GID: 1001}, Capabilities: &specs.LinuxCapabilities{}}
			with(p, c.Spec)
			file := processFile(b, p)
			c.RunDetached()
			c.ready()
			const execs = 25
			flags := []string{"--process", file}
			if name == "listener" {
				flags = append(flags, "--explain-denials")
			}
			for range execs {
				c.Exec(flags).OK(t)
			}
			seized := c.stop()
			inits := 0
			for _, s := range seized {
				if strings.Contains(s.Exe, "berth-init") {
					inits++
				}
				noMore(t, s, p, func(group string) bool { return group == "/" })
			}
			t.Logf("%d of %d processes seized, %d of them before their execve", len(seized), execs, inits)
			harness.Report(t, "attacks", execs)
		})
	}
}

// noMore compares what was seized with the process that it was to become, which has no
// capabilities. own tells its cgroup, as who seized it sees that.
func noMore(t *testing.T, s view.Seized, p *specs.Process, own func(group string) bool) {
	t.Helper()
	groups := []string{}
	for _, g := range p.User.AdditionalGids {
		groups = append(groups, strconv.Itoa(int(g)))
	}
	none := "0000000000000000"
	if s.Status["CapPrm"] != none || s.Status["CapEff"] != none || s.Status["CapInh"] != none || s.Status["CapBnd"] != none || s.Status["CapAmb"] != none {
		t.Errorf("seized with the capabilities %s (permitted), %s (bounding)", s.Status["CapPrm"], s.Status["CapBnd"])
	}
	four := func(id uint32) string { return strings.TrimSpace(strings.Repeat(strconv.Itoa(int(id))+" ", 4)) }
	if s.Status["Uid"] != four(p.User.UID) || s.Status["Gid"] != four(p.User.GID) || s.Status["Groups"] != strings.Join(groups, " ") {
		t.Errorf("seized as %s %s with the groups %q", s.Status["Uid"], s.Status["Gid"], s.Status["Groups"])
	}
	if p.NoNewPrivileges && s.Status["NoNewPrivs"] != "1" {
		t.Error("seized without no_new_privs")
	}
	for _, line := range s.Cgroups {
		if fields := strings.SplitN(line, ":", 3); len(fields) != 3 || !own(fields[2]) {
			t.Errorf("seized in the cgroup %s", line)
		}
	}
	for fd, target := range s.FDs {
		if fd > "2" && !strings.HasPrefix(target, "socket:") || len(fd) > 1 {
			t.Errorf("seized with descriptor %s: %s", fd, target)
		}
	}
}

// Where the filter refuses what an exec takes to be safe from that, it is refused, and says why.
// Where nobody could reach for it, it works.
func TestSeizeIsRefused(t *testing.T) {
	b := harness.New(t)
	c := newTracer(b)
	c.Spec.Process.Args = []string{"/bin/sleep", "1000"}
	c.Spec.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"setsid", "accept4"}, Action: specs.ActErrno}}}
	c.Create()
	c.Exec(nil, "/bin/true").FailsWith(t, 255, "before its start", "CAP_SYS_PTRACE")
	c.Start()
	c.Exec(nil, "/bin/true").FailsWith(t, 255, "/linux/seccomp", "CAP_SYS_PTRACE")
	c.Delete("--force")
	c.WaitExit()

	c.Spec.Hooks = &specs.Hooks{StartContainer: []specs.Hook{{Path: "/bin/true"}}}
	c.TryCreate().Fails(t, "/hooks/startContainer", "CAP_SYS_PTRACE")
	c.Spec.Hooks = nil

	c.Spec.Process.Capabilities.Bounding = harness.DefaultCaps
	c.Spec.Process.Capabilities.Effective, c.Spec.Process.Capabilities.Permitted = harness.DefaultCaps, harness.DefaultCaps
	c.Create()
	c.Exec(nil, "/bin/true").OK(t)
	c.Start()
	c.Exec(nil, "/bin/true").OK(t)
	c.Delete("--force")
	c.WaitExit()
	if _, err := os.Stat(filepath.Join(c.seen, "list")); err == nil {
		t.Error("the tracer ran")
	}
}

// Whoever has taken over what exec adds can speak to the runtime in its place. It is not believed,
// and nothing but this exec comes to an end by it.
func TestForgedRequests(t *testing.T) {
	b := harness.New(t)
	c := newTracer(b)
	c.Spec.Process.Args = append(c.Spec.Process.Args, "forge")
	c.RunDetached()
	c.ready()
	refused, execs := 0, 0
	// On a busy machine the tracer may be late for many.
	for ; execs < 40 || refused == 0 && execs < 1000; execs++ {
		r := c.Exec(nil, "/bin/true")
		switch {
		case r.Code == 0:
		case r.Code != 255 || strings.Contains(r.Stderr, "goroutine") || strings.Count(r.Stderr, "\n") != 1:
			t.Errorf("exec ended with %d: %s", r.Code, r.Stderr)
		default:
			refused++
		}
	}
	c.stop()
	t.Logf("%d of %d were refused", refused, execs)
	if refused == 0 {
		t.Error("nothing that was forged has arrived")
	}
	harness.Report(t, "attacks", execs)
}
