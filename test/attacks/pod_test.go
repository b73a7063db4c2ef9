package attacks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// join has a container join the pid namespace of a process.
func join(s *specs.Spec, pid int) {
	for i := range s.Linux.Namespaces {
		if n := &s.Linux.Namespaces[i]; n.Type == specs.PIDNamespace {
			n.Path = fmt.Sprintf("/proc/%d/ns/pid", pid)
		}
	}
}

// A container of a pod with CAP_SYS_PTRACE takes over what another one of it is made of, at the
// first instant that it is there: by then that is no more than its program will be.
func TestSeizeInAPod(t *testing.T) {
	if err := harness.ChosenPids(); err != nil {
		harness.Skip(t, "what sets a container up has to be in its pid namespace: %v", err)
	}
	lenient := &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{{Names: []string{"swapon"}, Action: specs.ActErrno}}}
	for name, with := range map[string]func(*specs.Spec){
		"plain":        func(*specs.Spec) {},
		"no_new_privs": func(s *specs.Spec) { s.Process.NoNewPrivileges = true; s.Linux.Seccomp = lenient },
		"filter":       func(s *specs.Spec) { s.Linux.Seccomp = lenient },
		"hook": func(s *specs.Spec) {
			s.Hooks = &specs.Hooks{CreateRuntime: []specs.Hook{{Path: "/bin/true"}}, StartContainer: []specs.Hook{{Path: "/bin/true"}}}
		},
		"limit, groups, scheduler": func(s *specs.Spec) {
			s.Process.User.AdditionalGids = []uint32{4242}
			s.Process.Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NPROC", Soft: 3, Hard: 3}}
			s.Process.Scheduler = &specs.Scheduler{Policy: specs.SchedBatch, Flags: []specs.LinuxSchedulerFlag{specs.SchedFlagResetOnFork}}
		},
		"user namespace": func(s *specs.Spec) {
			harness.UserNamespace(s)
			s.Linux.Resources = nil
			s.Mounts = slices.DeleteFunc(s.Mounts, func(m specs.Mount) bool { return m.Type == "proc" }) // it is for the owner of the pid namespace
			s.Linux.MaskedPaths, s.Linux.ReadonlyPaths = nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := newTracer(b)
			c.RunDetached()
			c.ready()
			const made = 8
			var p *specs.Process
			for range made {
				other := b.Container("/bin/true")
				p = other.Spec.Process
				p.User, p.Capabilities = specs.User{UID: 1000, GID: 1001}, &specs.LinuxCapabilities{}
				with(other.Spec)
				join(other.Spec, c.PID)
				other.Run().OK(t)
			}
			seized := c.stop()
			if name == "user namespace" { // as those outside of it see them
				p.User.UID, p.User.GID = p.User.UID+100000, p.User.GID+100000
			}
			inits := 0
			for _, s := range seized {
				if strings.Contains(s.Exe, "berth-init") {
					inits++
				}
				// One that is about to end is said to be in the root of version 1 (proc_cgroup_show
				// in kernel/cgroup/cgroup.c).
				noMore(t, s, p, func(group string) bool { return group == "/" || strings.HasPrefix(group, "/../"+b.Tag+"-") })
			}
			t.Logf("%d processes seized of %d containers, %d of them before their execve", len(seized), made, inits)
			if len(seized) == 0 {
				t.Error("nothing was seized: the tracer sees none")
			}
			harness.Report(t, "attacks", made)
		})
	}
}
