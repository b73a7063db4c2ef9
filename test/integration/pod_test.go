package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// inPod has a container join the pid namespace of another one.
func inPod(s *specs.Spec, of *harness.Container) {
	for i := range s.Linux.Namespaces {
		if n := &s.Linux.Namespaces[i]; n.Type == specs.PIDNamespace {
			n.Path = fmt.Sprintf("/proc/%d/ns/pid", of.PID)
		}
	}
}

// A container of a pod is in the pid namespace of the pod's first one: its /proc, its terminal, its
// hooks and its further processes have that to do with. (On new kernels it is set up outside of
// it.)
func TestContainerOfAPod(t *testing.T) {
	b := harness.New(t)
	first := b.Container("/bin/sleep", "1000")
	first.RunDetached()
	second := b.Container("/bin/sh", "-c", "cat /proc/1/cmdline; echo; cut -d' ' -f5,6 /proc/self/stat; readlink /proc/self; sysctl -n net.ipv4.ip_default_ttl; echo $$")
	second.Spec.Linux.Sysctl = map[string]string{"net.ipv4.ip_default_ttl": "63"}
	second.Spec.Linux.Namespaces = append(second.Spec.Linux.Namespaces, specs.LinuxNamespace{Type: specs.TimeNamespace})
	second.Spec.Linux.TimeOffsets = map[string]specs.LinuxTimeOffset{"monotonic": {Secs: 86400}}
	seen := b.Path("hook")
	second.Spec.Hooks = &specs.Hooks{CreateRuntime: []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c", "cat > " + seen}}}}
	inPod(second.Spec, first)
	r := second.Run()
	r.OK(t)
	lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "/bin/sleep") || lines[3] != "63" {
		t.Errorf("it says %q", r.Stdout)
	}
	if state, err := os.ReadFile(seen); err != nil || !strings.Contains(string(state), `"status":"creating"`) {
		t.Errorf("the hook was told %s: %v", state, err)
	}

	third := b.Container("/bin/sh", "-c", "tty; tty < /dev/tty; cut -d' ' -f5-8 /proc/self/stat")
	third.Spec.Process.Terminal = true
	inPod(third.Spec, first)
	s := b.FDSocket("console.sock")
	third.RunDetached("--console-socket", s.Path)
	if got := s.ReceiveTerminal().All(); strings.Count(got, "/dev/pts/0") != 1 || strings.Count(got, "/dev/tty") != 1 {
		t.Errorf("the terminal says %q", got)
	}
	third.WaitExit()
	first.Delete("--force")
	first.WaitExit()
}
