package watch

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
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

func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skipf("%v (Debian has it in the package prometheus)", err)
	}
	r := start(t, wanted)
	r.awaitReady()
	_, text := r.get("/metrics")
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(text)
	if out, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := exec.Command(promtool, "check", "rules", "../../deploy/node/alerts.yaml").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// The dashboard and the alerts ask for metrics that there are.
func TestShippedQueries(t *testing.T) {
	r := start(t, wanted)
	r.awaitReady()
	r.byHand("3", "/proc/sys/kernel/panic") // the counters of drifts appear with the first
	r.awaitSaid("kernel.panic is 10 again")
	_, text := r.get("/metrics")
	there := map[string]bool{"up": true}
	for line := range strings.Lines(text) {
		if words := strings.Fields(line); words[0] == "#" {
			there[words[2]] = true
		}
	}
	for _, file := range []string{"grafana-dashboard.json", "alerts.yaml"} {
		content, err := os.ReadFile("../../deploy/node/" + file)
		if err != nil {
			t.Skipf("the shipped files are not beside this test: %v", err)
		}
		if strings.HasSuffix(file, ".json") {
			var v struct {
				Panels []struct{ Targets []struct{ Expr string } }
			}
			if err := json.Unmarshal(content, &v); err != nil || len(v.Panels) < 8 {
				t.Errorf("%s: %d panels, %v", file, len(v.Panels), err)
			}
		}
		found := regexp.MustCompile(`\b(berth_node|process)_[a-z_]+`).FindAllString(string(content), -1)
		if len(found) < 8 {
			t.Errorf("%s asks for %d metrics only", file, len(found))
		}
		for _, name := range found {
			if !there[name] {
				t.Errorf("%s asks for %s, which there is not", file, name)
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
	if out.String() != "berth-node: one;two\n" {
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
