package attacks

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/internal/proc/procs"
	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

// The program of a startContainer hook is the image's. So it is as confined as the container's
// process, in every respect.
func TestStartHookIsTheProcess(t *testing.T) {
	umask := uint32(0o27)
	score := 345
	configs := map[string]func(*specs.Spec){
		"nobody": func(s *specs.Spec) {
			s.Process.User = specs.User{UID: 65534, GID: 65533, AdditionalGids: []uint32{4242}, Umask: &umask}
			s.Process.Capabilities = &specs.LinuxCapabilities{}
			s.Process.NoNewPrivileges = true
			s.Process.Cwd = "/tmp"
			s.Process.OOMScoreAdj = &score
			s.Process.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: 77, Hard: 99}, {Type: "RLIMIT_NPROC", Soft: 50, Hard: 50}}
			s.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"swapon"}, Action: specs.ActErrno}}}
		},
		"user namespace": func(s *specs.Spec) {
			harness.UserNamespace(s)
			s.Linux.Resources = nil
			s.Process.User = specs.User{UID: 1000, GID: 1000}
		},
		"filter without no_new_privs": func(s *specs.Spec) {
			s.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"swapon"}, Action: specs.ActErrno}}}
		},
		"scheduling": func(s *specs.Spec) {
			s.Process.Scheduler = &specs.Scheduler{Policy: specs.SchedBatch, Nice: 5, Flags: []specs.LinuxSchedulerFlag{specs.SchedFlagResetOnFork}}
			s.Process.IOPriority = &specs.LinuxIOPriority{Class: specs.IOPRIO_CLASS_IDLE}
			s.Linux.Personality = &specs.LinuxPersonality{Domain: specs.PerLinux32}
		},
	}
	for name, change := range configs {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/inside", "hook", "process", "/calls/list")
			check(t, os.Mkdir(c.Path("calls"), 0o777))
			check(t, os.Chmod(c.Path("calls"), 0o777))
			change(c.Spec)
			c.Spec.Process.Args = []string{"/bin/sh", "-c", "exec /inside hook process /calls/list < /dev/null"}
			c.Spec.Hooks = &specs.Hooks{StartContainer: []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c", "exec /inside hook hook /calls/hook"}}}}
			cmd := c.Command("run", nil)
			cmd.Attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: []uint32{0, 4}}}
			cmd.Run().OK(t)
			read := func(file string) *view.View {
				data, err := os.ReadFile(c.Path("calls/" + file))
				check(t, err)
				var call view.HookCall
				check(t, json.Unmarshal(data, &call))
				return &call.View
			}
			process, hook := read("list"), read("hook")
			for _, key := range []string{"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Umask", "SigIgn", "SigBlk", "Cpus_allowed"} {
				if hook.Status[key] != process.Status[key] {
					t.Errorf("%s: the hook has %q, the process %q", key, hook.Status[key], process.Status[key])
				}
			}
			for _, what := range []struct {
				name          string
				hook, process any
			}{
				{"cgroups", hook.Cgroups, process.Cgroups}, {"limits", hook.Limits, process.Limits}, {"namespaces", hook.NS, process.NS},
				{"working directory", hook.Cwd, process.Cwd}, {"OOM score", hook.OOMScore, process.OOMScore}, {"scheduler", hook.Sched, process.Sched},
				{"I/O priority", hook.IOPrio, process.IOPrio}, {"personality", hook.Persona, process.Persona}, {"keyring", hook.Keyring, process.Keyring},
				{"mounts", hook.Mounts, process.Mounts},
			} {
				if !reflect.DeepEqual(what.hook, what.process) {
					t.Errorf("%s: the hook has %v, the process %v", what.name, what.hook, what.process)
				}
			}
			if len(hook.FDs) != 3 {
				t.Errorf("the hook has the descriptors %v", hook.FDs)
			}
		})
	}
	harness.Report(t, "attacks", len(configs))
}

// What a hook in the container leaves behind goes with the container, also where that has no pid
// namespace of its own.
func TestHooksEndWithTheContainer(t *testing.T) {
	for _, kind := range []string{"createContainer", "startContainer"} {
		b := harness.New(t)
		c := b.Container("/bin/true")
		harness.WithoutNamespace(c.Spec, specs.PIDNamespace)
		c.WriteFile("pid", "", 0o666)
		file := "/pid"
		if kind == "createContainer" {
			file = c.Path("pid")
		}
		hook := specs.Hook{Path: "/bin/sh", Args: []string{"sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 < /dev/null & echo $! > " + file}, Env: []string{"PATH=/bin:/usr/bin", b.Mark()}}
		c.Spec.Hooks = &specs.Hooks{StartContainer: []specs.Hook{hook}}
		if kind == "createContainer" {
			c.Spec.Hooks = &specs.Hooks{CreateContainer: []specs.Hook{hook}}
		}
		c.Run().OK(t)
		data, err := os.ReadFile(c.Path("pid"))
		check(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
		check(t, err)
		// It was killed; who reaps it is the test, which orphans come to, or process 1.
		if s, err := procs.ReadStat(pid); err == nil && s.State != 'Z' {
			t.Errorf("what the %s hook left is still there: %+v", kind, s)
			check(t, syscall.Kill(pid, syscall.SIGKILL))
		}
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	}
	harness.Report(t, "attacks", 2)
}

// A createContainer hook is a program of the host. It begins in the root file system's directory,
// with the usual umask.
func TestCreateHookSurroundings(t *testing.T) {
	for name, change := range map[string]func(*specs.Spec){
		"plain":          func(*specs.Spec) {},
		"user namespace": func(s *specs.Spec) { harness.UserNamespace(s); s.Linux.Resources = nil },
		"no mount namespace": func(s *specs.Spec) {
			harness.WithoutNamespace(s, specs.MountNamespace)
			s.Mounts = nil
			s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/true")
			change(c.Spec)
			said := b.WriteFile("said", "", 0o666)
			c.Spec.Hooks = &specs.Hooks{CreateContainer: []specs.Hook{{Path: "/bin/sh", Env: []string{"PATH=/bin:/usr/bin"},
				Args: []string{"sh", "-c", "(pwd; umask; grep Groups /proc/thread-self/status; tail -n 1 /proc/thread-self/cgroup) > " + said}}}}
			cmd := c.Command("run", nil)
			cmd.Attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: []uint32{0, 4}}}
			cmd.Run().OK(t)
			data, err := os.ReadFile(said)
			check(t, err)
			lines := strings.Split(strings.TrimSpace(string(data)), "\n")
			if len(lines) != 4 || lines[0] != c.Rootfs() || lines[1] != "0022" || strings.TrimSpace(strings.TrimPrefix(lines[2], "Groups:")) != "" {
				t.Fatalf("the hook was in %q", lines)
			}
			if !strings.HasSuffix(lines[3], c.ID) && !strings.HasSuffix(lines[3], ":/") {
				t.Errorf("the hook was in the cgroup %s", lines[3])
			}
		})
	}
}
