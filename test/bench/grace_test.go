package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// joining is a file opened by which a process is brought into a cgroup with a wait for a grace
// period of RCU. Version 1's tasks, for one thread, costs none.
var joining = regexp.MustCompile(`(?m)^openat2?\(.*cgroup\.procs.*(O_WRONLY|O_RDWR).*$`)

var intoCgroup = regexp.MustCompile(`(?m)^clone3\(.*CLONE_INTO_CGROUP`)

// TestNoGracePeriod looks for writes to cgroup.procs where a container's processes come to be: each
// takes 8 to 20 ms on a machine that has been idle.
func TestNoGracePeriod(t *testing.T) {
	strace := harness.NeedTool(t, "strace", "strace")
	for name, change := range map[string]func(*specs.Spec){
		"plain": func(*specs.Spec) {}, // its processes may come to freeze their cgroup
		"no mounts": func(s *specs.Spec) {
			s.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{
				{Names: []string{"mount", "fsmount"}, Action: specs.ActErrno}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/sleep", "1000")
			change(c.Spec)
			traced := func(what string, call *harness.Command) {
				t.Helper()
				out := b.Path("trace-" + what)
				call.Wrap = []string{strace, "-ff", "-qq", "-e", "trace=openat,openat2,clone3", "-o", out}
				call.Run().OK(t)
				files, err := filepath.Glob(out + ".*")
				if err != nil {
					t.Fatal(err)
				}
				cloned := false
				for _, file := range files {
					text, err := os.ReadFile(file)
					if err != nil {
						t.Fatal(err)
					}
					cloned = cloned || intoCgroup.Match(text)
					if line := joining.Find(text); line != nil {
						t.Errorf("%s: %s", what, line)
					}
				}
				if !cloned && slices.ContainsFunc(harness.Hierarchies(t), func(h harness.Hierarchy) bool { return h.Unified }) {
					t.Errorf("%s: nothing was cloned into a cgroup", what)
				}
			}
			other := b.Container("/bin/true")
			change(other.Spec)
			traced("run", other.Command("run", nil))
			c.RunDetached()
			traced("exec", c.Command("exec", nil, "/bin/true"))
			c.Delete("--force")
			c.WaitExit()
		})
	}
}
