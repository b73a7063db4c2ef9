package node

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// pods makes pods as a kubelet without systemd does, with a container each in which a process runs,
// and gives the cgroup-root above them.
func pods(t testing.TB, n int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making cgroups at the top takes root")
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("systemd owns the top of the hierarchy here")
	}
	host, top := topGroup(t, fmt.Sprintf("pods%d", n))
	for i := range n {
		level := []string{"", "/burstable", "/besteffort"}[i%3]
		one, err := host.Create(fmt.Sprintf("%s/kubepods%s/pod%d/%064x", top, level, i, i))
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sleep", "900")
		if err := one.Start(cmd); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
		})
		one.Close()
	}
	return top
}

// watchPods runs a daemon over pods; before its name comes what it is run by.
func watchPods(t testing.TB, top string, by ...string) *resting {
	t.Helper()
	dir := t.TempDir()
	r := &resting{TB: t, socket: dir + "/http"}
	args := append(by, program(t), "watch", "--config=/dev/null", "--state-dir="+dir+"/state", "--listen=unix:"+r.socket,
		"--kernel-parameters=off", "--oom-score-mode=off", "--berth-parent=off", "--cgroup-root="+top, "--cgroups-per-qos")
	r.start(exec.Command(args[0], args[1:]...))
	return r
}

// counter counts the system calls that are about cgroups below one.
type counter struct {
	*testing.T
	top, log string
}

// command is how strace is called: so that it can be ended, and with the paths of descriptors, by
// which the calls are known.
func (c counter) command(strace string) []string {
	return []string{strace, "-I2", "-f", "-y", "-s", "0", "-o", c.log, "-e", "trace=file,desc"}
}

func (c counter) calls() int {
	c.Helper()
	text, err := os.ReadFile(c.log)
	if err != nil {
		c.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, c.top+"/") && !strings.Contains(line, "resumed>") {
			n++
		}
	}
	return n
}

// To look at a pod takes few system calls: there may be a thousand.
func TestCallsPerPod(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip(err)
	}
	const n = 60
	top := pods(t, n)
	few := func(t *testing.T, calls int, most float64) {
		each := float64(calls) / n
		t.Logf("%.1f calls for each pod", each)
		if each < most/2 || each > most {
			t.Errorf("%.1f calls for each pod with a container of one process, want %v at most", each, most)
		}
	}
	t.Run("status", func(t *testing.T) {
		c := counter{t, top, t.TempDir() + "/calls"}
		args := append(c.command(strace), program(t), "status", "--config=/dev/null", "--state-dir="+t.TempDir(), "--cgroup-root="+top, "--cgroups-per-qos", "--json")
		out, err := exec.Command(args[0], args[1:]...).Output()
		if err != nil {
			t.Skipf("strace can't run it here: %v", err)
		}
		var status struct {
			Use struct {
				Levels []struct{ Pods, Containers int }
			}
		}
		if err := json.Unmarshal(out, &status); err != nil {
			t.Fatal(err)
		}
		for _, l := range status.Use.Levels {
			if l.Pods != n/3 || l.Containers != n/3 {
				t.Fatalf("of %d pods it sees %+v", n, status.Use.Levels)
			}
		}
		// Twice it is looked what is in it: whose the containers are, and what runs.
		few(t, c.calls(), 18)
	})
	t.Run("scrape", func(t *testing.T) {
		c := counter{t, top, t.TempDir() + "/calls"}
		r := watchPods(t, top, c.command(strace)...)
		before := c.calls()
		text := r.get("/metrics")
		for _, level := range []string{"guaranteed", "burstable", "besteffort"} {
			if want := fmt.Sprintf("berth_node_containers{qos=%q} %d\n", level, n/3); !strings.Contains(text, want) {
				t.Fatalf("%s is not in\n%s", want, text)
			}
		}
		few(t, c.calls()-before, 9)
	})
}

// BenchmarkScrape is a scrape of a node with 1,000 pods, over the socket.
func BenchmarkScrape(b *testing.B) {
	r := watchPods(b, pods(b, 1000))
	used := r.processor()
	for b.Loop() {
		r.get("/metrics")
	}
	b.ReportMetric(float64((r.processor()-used).Microseconds())/1000/float64(b.N), "cpu-ms/op")
}
