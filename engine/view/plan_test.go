package view

import (
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/plan"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// What a run does beyond the Program is in the Plan's words, with the entry that asks for it.
func TestPlanText(t *testing.T) {
	timeout := 3
	s := &specs.Spec{
		Version: "1.2.0", Root: &specs.Root{Path: "rootfs"},
		Process: &specs.Process{Args: []string{"a b"}, Env: []string{"X=1", "HOME="}, Cwd: "/"},
		Hooks:   &specs.Hooks{Poststop: []specs.Hook{{Path: "/bin/h", Args: []string{"h", "-x y"}, Env: []string{"A=b"}, Timeout: &timeout}}},
		Linux: &specs.Linux{
			Namespaces: []specs.LinuxNamespace{{Type: specs.MountNamespace}},
			IntelRdt:   &specs.LinuxIntelRdt{ClosID: "gold", Schemata: []string{"L3:0=f"}, EnableMonitoring: true},
		},
	}
	p, err := plan.New(s, &host.Host{Layout: ledger.Layout{Unified: []string{"pids"}}}, plan.Options{
		ID: "demo", Bundle: "/bundle", Listen: 2, NotifyDir: "/state/demo/notify", Home: func(*plan.Plan) string { return "/home/of" },
	})
	if err != nil {
		t.Fatal(err)
	}
	text := string(PlanText(p, []string{"odd"}))
	for _, line := range []string{
		"warning: odd\n",
		"  class of service gold  # /linux/intelRdt/closID\n",
		"  schemata L3:0=f  # /linux/intelRdt/schemata/0\n",
		"  a monitoring group  # /linux/intelRdt/enableMonitoring\n",
		"  poststop /bin/h as \"h\" \"-x y\", environment \"A=b\", for at most 3 s  # /hooks/poststop/0\n",
		"  bind /state/demo/notify on /run/host/notify (ro,nosuid,nodev,noexec)\n",
		"  environment \"X=1\"  # /process/env\n  environment \"NOTIFY_SOCKET=/run/host/notify/socket\"  # /process/env\n" +
			"  environment \"HOME=/home/of\"  # /process/env\n  environment \"LISTEN_FDS=2\"  # /process/env\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the text has no %q:\n%s", line, text)
		}
	}
	if strings.Contains(text, `"HOME="`) {
		t.Errorf("the empty HOME is there still:\n%s", text)
	}
}
