package view

import (
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/caps"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

func TestListCountsWhatDoesNotFit(t *testing.T) {
	words := strings.Fields(strings.Repeat("/proc/something ", 20))
	if got, want := List(words), strings.Repeat("/proc/something, ", 4)+"/proc/something and 15 more"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := List(words[:1]); got != words[0] {
		t.Errorf("got %q", got)
	}
	long := strings.Repeat("x", 500)
	if got := List([]string{long}); got != long {
		t.Errorf("a single word is cut: %q", got)
	}
}

// What is not as in other containers is said.
func TestBriefSaysWhatDiffers(t *testing.T) {
	kill, _ := caps.SetOf([]string{"CAP_KILL"})
	p := &plan.Plan{
		Namespaces: []plan.Namespace{
			{Type: specs.PIDNamespace, At: "/linux/namespaces/0"},
			{Type: specs.NetworkNamespace, Path: "/run/netns/a", At: "/linux/namespaces/1"},
			{Type: specs.MountNamespace, At: "/linux/namespaces/2"},
		},
		Devices: []plan.Device{
			{Path: "/dev/null", Type: 'c', Major: 1, Minor: 3, Mode: 0o666},
			{Path: "/dev/tty", Type: 'c', Major: 5, Mode: 0o666, Bind: true},
			{Path: "/dev/zero", Type: 'c', Major: 1, Minor: 5, Mode: 0o666, Bind: true},
			{Path: "/dev/fuse", Type: 'c', Major: 10, Minor: 229, Mode: 0o666, At: "/linux/devices/0"},
		},
		Process: plan.Process{
			At: "/process", Args: []string{"sh"}, Cwd: "/", Env: []string{"A=1", "B=2"},
			Effective: kill, Permitted: kill, Bounding: kill | 1, Ambient: kill,
		},
	}
	for what, c := range map[string]struct{ got, want []Step }{
		"namespaces": {briefNamespaces(p), []Step{{"new pid, mount", "/linux/namespaces"}, {"join network /run/netns/a", "/linux/namespaces/1"}}},
		"devices":    {briefDevices(p), []Step{{"/dev/tty, /dev/zero: the host's by bind mount", ""}, {"/dev/null", ""}, {"/dev/fuse c 10:229 mode 666", "/linux/devices/0"}}},
		"process": {briefProcess(&p.Process), []Step{
			{"user 0, group 0", "/process/user"},
			{"capabilities: CAP_KILL", "/process/capabilities"},
			{"bounding capabilities: CAP_CHOWN, CAP_KILL", "/process/capabilities/bounding"},
			{"ambient capabilities: CAP_KILL", "/process/capabilities/ambient"},
			{"working directory /", "/process/cwd"},
			{"environment A, B", "/process/env"},
			{`execute "sh"`, "/process/args"},
		}},
	} {
		if len(c.got) != len(c.want) {
			t.Errorf("%s: got %q, want %q", what, c.got, c.want)
			continue
		}
		for i := range c.got {
			if c.got[i] != c.want[i] {
				t.Errorf("%s: got %q, want %q", what, c.got[i], c.want[i])
			}
		}
	}
}
