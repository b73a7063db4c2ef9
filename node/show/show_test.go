package show

import (
	"context"
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/berth-runtime/berth/node/machine/fake"
	"github.com/berth-runtime/berth/node/machine/usage"
	"github.com/berth-runtime/berth/node/plan"
)

const text = `
system-reserved: {cpu: 500m, memory: 1Gi}
kube-reserved: {cpu: 250m, memory: 512Mi}
eviction-hard: {memory.available: 512Mi}
cgroup-root: /
cgroups-per-qos: true
system-reserved-enforce: true
pods-enforce: cpu
`

// node is a fake node with two pods, one of which has a name that is no name.
func node(t *testing.T) *Node {
	t.Helper()
	m := fake.New(t, "unified", true)
	running := func(path string, memory string) {
		m.Group(path)
		m.Write("/sys/fs/cgroup"+path+"/cgroup.events", "populated 1\nfrozen 0\n")
		m.Write("/sys/fs/cgroup"+path+"/memory.current", memory+"\n")
		m.Write("/sys/fs/cgroup"+path+"/pids.current", "3\n")
	}
	// As the kernel sums it up.
	for slice, use := range map[string][2]string{"/kubepods.slice": {"2684354560", "9"}, "/kubepods.slice/kubepods-burstable.slice": {"2147483648", "6"}, "/kubepods.slice/kubepods-besteffort.slice": {"0", "0"}} {
		m.Group(slice)
		m.Write("/sys/fs/cgroup"+slice+"/memory.current", use[0]+"\n")
		m.Write("/sys/fs/cgroup"+slice+"/pids.current", use[1]+"\n")
	}
	running("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podA.slice/cri-1.scope", "1073741824")
	running("/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podA.slice/cri-2.scope", "1073741824")
	running("/kubepods.slice/kubepods-podB.slice/cri-3.scope", "536870912")
	m.Group("/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podC.slice/cri-4.scope") // has ended
	m.Run(30, "/machine.slice/libpod-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope", "pid:[5]")
	m.Run(31, "/system.slice/docker-\x1b[31m.scope", "pid:[6]")
	m.Group("/kubernetes.slice")
	m.Write("/sys/fs/cgroup/system.slice/memory.current", "268435456\n")
	m.Process(900, "containerd", "/usr/bin/containerd", "/system.slice/containerd.service", "pid:[1]")
	p, err := m.Prepare(context.Background(), m.Config(text))
	if err != nil {
		t.Fatal(err)
	}
	use := usage.Measure(m.Machine, p)
	return &Node{Plan: p, Before: use, Now: use, Seconds: 0.5}
}

func TestStatus(t *testing.T) {
	got := Style{}.Status(node(t))
	for _, want := range []string{
		"This node: systemd 257, cgroups unified, driver systemd\n",
		"system     /system.slice      yes           0.00  0.50      256.0Mi 1.0Gi 0 -\n",
		"workloads  /kubepods.slice    cpu           0.00  3.25",
		"guaranteed     1           1      0.00      512.0Mi     3\n",
		"burstable      1           2      0.00        2.0Gi     6\n",
		"besteffort     0           0      0.00            0     0\n",
		"all            2           3      0.00        2.5Gi     9\n",
		"memory  shared out sssssskkk###",
		"containerd  /system.slice/containerd.service  system      900          0    -999\n",
		"Containers of this node: docker 1, kubernetes 3, podman 1; 2 outside of the workloads\n",
		"podman/0123456789ab /machine.slice/libpod-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope - (outside)",
		`docker/\x1b[31m /system.slice/docker-\x1b[31m.scope system (outside)`,
		"create it with --cgroup-parent kubepods.slice",
	} {
		if os.Geteuid() != 0 && strings.HasPrefix(want, "containerd") {
			continue // its executable is ours here, and so it is not the host's daemon
		}
		if !strings.Contains(squeeze(got), squeeze(want)) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Error("colours where none were asked for")
	}
}

// Tables have room on a narrow terminal, with their numbers whole, and have all on a wide one.
// Sentences may wrap.
func TestNarrow(t *testing.T) {
	n := node(t)
	escape := regexp.MustCompile("\x1b\\[[0-9]+m")
	for _, unicode := range []bool{false, true} {
		whole := Style{Unicode: unicode}
		for _, width := range []int{1, 20, 36, 40, 60, 80, 100, 400} {
			s := Style{Width: width, Color: true, Unicode: unicode}
			for name, draw := range map[string]func(s Style) string{
				"parts": func(s Style) string { return s.parts(n) }, "bars": func(s Style) string { return s.bars(n) },
				"levels": func(s Style) string { return s.levels(n) }, "daemons": func(s Style) string { return s.daemons(n.Plan) },
				"resources": func(s Style) string { return s.resources(n.Plan.Resources) }, "tree": func(s Style) string { return s.Tree(n.Plan) },
				"steps": func(s Style) string { return s.steps(n.Plan) },
			} {
				text := escape.ReplaceAllString(draw(s), "")
				if width == 400 && text != draw(whole) {
					t.Errorf("%s on a wide terminal:\n%s\nand without one:\n%s", name, text, draw(whole))
				}
				least := width // what no table is cut below
				switch name {
				case "bars":
					least = max(width, 39)
				default:
					least = max(width, 10)
				}
				for line := range strings.SplitSeq(text, "\n") {
					if got := utf8.RuneCountInString(line); got > least {
						t.Errorf("%s on %d columns: a line of %d: %q", name, width, got, line)
					}
				}
			}
		}
	}
	if got := (Style{Width: 80, Unicode: true}).parts(n); !strings.Contains(squeeze(got), "workloads /kub…slice cpu 0.00 3.25 2.5Gi 6.0Gi 9") {
		t.Errorf("on 80 columns:\n%s", got)
	}
}

func TestPlan(t *testing.T) {
	got := Style{Unicode: true}.Plan(node(t).Plan)
	for _, want := range []string{
		"memory              8.0Gi   1.0Gi  512.0Mi   512.0Mi           -        6.0Gi               6.5Gi\n",
		"├─ system.slice                    system-reserved: cpu 0.50, memory 1.0Gi; enforced\n",
		"├─ user.slice                      sessions of users",
		"└─ kubepods.slice                  workloads: cpu 3.25, memory 6.5Gi, ",
		"   ├─ kubepods-burstable.slice     burstable",
		"   └─ kubepods-besteffort.slice    besteffort",
		"~  system.slice MemoryMax      infinity  →  1073741824  node.yaml:2: system-reserved.memory\n",
		"+  kubepods.slice                           start       default of",
	} {
		want = strings.Replace(want, "default of", "node.yaml:5: cgroup-root", 1)
		if !strings.Contains(squeeze(got), squeeze(want)) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// squeeze makes runs of spaces one.
func squeeze(s string) string {
	for strings.Contains(s, "  ") {
		s = strings.ReplaceAll(s, "  ", " ")
	}
	return s
}

func TestJSON(t *testing.T) {
	n := node(t)
	for _, make := range []func() ([]byte, error){func() ([]byte, error) { return PlanJSON(n.Plan) }, func() ([]byte, error) { return StatusJSON(n) }} {
		got, err := make()
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(got, &v); err != nil || !strings.Contains(string(got), `"cause": "node.yaml:2: system-reserved.memory"`) {
			t.Errorf("%v: %s", err, got)
		}
	}
}

func TestHTMLIsSelfContained(t *testing.T) {
	n := node(t)
	n.Plan.Warnings = append(n.Plan.Warnings, `<script>alert("x")</script>`)
	page := string(HTML(n, time.Unix(0, 0)))
	for _, bad := range []string{"<script", "src=", "href=", "@import", "url(", "http://", "https://"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page has %s", bad)
		}
	}
	if !strings.Contains(page, "&lt;script&gt;") || !strings.Contains(page, "1970-01-01 00:00:00 UTC") {
		t.Error("what should be there is not")
	}
}

// What the bars say is what the numbers say.
func TestShares(t *testing.T) {
	for _, s := range node(t).Shares() {
		if s.Name == string(plan.Workloads) && s.Reserved["memory"] != 6<<30 || s.Name == string(plan.System) && s.Used["memory"] != 256<<20 {
			t.Errorf("%+v", s)
		}
	}
}
