package watch

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	deploy "github.com/berth-runtime/berth/build/deploy/node"
)

func TestMetricsAreWhatPrometheusReads(t *testing.T) {
	r := start(t, wanted)
	r.awaitReady()
	_, text := r.get("/metrics")
	help, kind := map[string]bool{}, map[string]bool{}
	sample := regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [-+0-9.eE]+$`)
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "# HELP "):
			help[words[2]] = true
		case strings.HasPrefix(line, "# TYPE "):
			kind[words[2]] = true
		default:
			m := sample.FindStringSubmatch(line)
			if m == nil {
				t.Errorf("no sample: %s", line)
			} else if !help[m[1]] || !kind[m[1]] {
				t.Errorf("%s comes before its HELP and TYPE", m[1])
			}
			if seen[words[0]] {
				t.Errorf("%s is there twice", words[0])
			}
			seen[words[0]] = true
		}
	}
	for _, want := range []string{`berth_node_capacity{resource="memory"} 8.589934592e+09`, `berth_node_reserved{resource="cpu",part="system"} 0.5`,
		`berth_node_enforced{part="workloads"} 1`, `berth_node_settings{state="unmended"} 0`, "berth_node_healthy 1"} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

// promtool runs Prometheus' own checker.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	program, err := exec.LookPath("promtool")
	if err != nil {
		t.Skipf("%v (Debian has it in the package prometheus)", err)
	}
	check := exec.Command(program, args...)
	check.Stdin = strings.NewReader(input)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

const shipped = "../../build/deploy/node/"

func TestPromtoolReadsTheMetrics(t *testing.T) {
	r := start(t, wanted)
	r.awaitReady()
	_, text := r.get("/metrics")
	promtool(t, text, "check", "metrics")
}

// The alerts are well-formed, and fire when they should and not before.
func TestAlerts(t *testing.T) {
	promtool(t, "", "check", "rules", shipped+"alerts.yaml")
	promtool(t, "", "test", "rules", shipped+"alerts_test.yaml")
}

// dashboard is what a test looks at of Grafana's model.
type dashboard struct {
	Title, UID string
	Templating struct {
		List []struct{ Name, Type string }
	}
	Panels []struct {
		ID         int
		Title      string
		Type       string
		Datasource struct{ Type, UID string }
		GridPos    struct{ X, Y, W, H int }
		Targets    []struct{ Expr, RefID string }
	}
}

// The dashboard is one that Grafana can draw: panels with queries that Prometheus
// understands, of one data source, side by side.
func TestDashboard(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(deploy.Dashboard), &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || len(d.Panels) < 8 {
		t.Errorf("%+v", d)
	}
	variables := map[string]bool{"__rate_interval": true}
	for _, v := range d.Templating.List {
		variables[v.Name] = true
	}
	ids, rules := map[int]bool{}, "groups:\n- name: dashboard\n  rules:\n"
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" || p.Type == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %+v", p)
		}
		ids[p.ID] = true
		at := p.GridPos
		if at.W < 1 || at.H < 1 || at.X < 0 || at.X+at.W > 24 { // Grafana's grid has 24 columns
			t.Errorf("%s is at %+v", p.Title, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Errorf("%s lies over %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		refs := map[string]bool{}
		for i, q := range p.Targets {
			if refs[q.RefID] {
				t.Errorf("%s has two queries %s", p.Title, q.RefID)
			}
			refs[q.RefID] = true
			for _, v := range regexp.MustCompile(`\$\{?(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
				if !variables[v[1]] {
					t.Errorf("%s: there is no variable %s", p.Title, v[1])
				}
			}
			rules += fmt.Sprintf("  - {record: 'q:%d:%d', expr: %q}\n", p.ID, i, strings.ReplaceAll(q.Expr, "$__rate_interval", "5m"))
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", file)
}

// The dashboard and the alerts ask for metrics that there are.
func TestShippedQueries(t *testing.T) {
	r := start(t, wanted)
	r.awaitReady()
	r.byHand("30", "/proc/sys/kernel/panic") // the counters of drifts appear with the first
	r.awaitSaid("kernel.panic is 10 again")
	_, text := r.get("/metrics")
	there := map[string]bool{"up": true}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); words[0] == "#" {
			there[words[2]] = true
		}
	}
	for file, content := range map[string]string{"the dashboard": deploy.Dashboard, "the alerts": deploy.Alerts} {
		found := regexp.MustCompile(`\b(berth_node|process)_[a-z_]+`).FindAllString(content, -1)
		if len(found) < 8 {
			t.Errorf("%s asks for %d metrics only", file, len(found))
		}
		for _, name := range found {
			if !there[name] {
				t.Errorf("%s asks for %s, which does not exist", file, name)
			}
		}
	}
}

func TestJournalRecord(t *testing.T) {
	e := Event{Name: "drift", Priority: warning, Message: "one\ntwo", Fields: [][2]string{{"BERTH_NODE_WHO", "x"}}}
	want := "MESSAGE\n\x07\x00\x00\x00\x00\x00\x00\x00one\ntwo\nPRIORITY=4\nSYSLOG_IDENTIFIER=berth-node\nBERTH_NODE_EVENT=drift\nBERTH_NODE_WHO=x\n"
	if got := string(e.record()); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	out := &lines{}
	newJournal(func(string) string { return "" }, out).write(e)
	if out.String() != "berth-node: one; two\n" {
		t.Errorf("%q", out)
	}
}

func TestLabels(t *testing.T) {
	var x exposition
	x.sample("m", 1, "a", "\"\\\n", "b", "c")
	if got := x.b.String(); got != `m{a="\"\\\n",b="c"} 1`+"\n" {
		t.Errorf("%q", got)
	}
}
