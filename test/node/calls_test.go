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
func pods(t *testing.T, n int) string {
	t.Helper()
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

// To look at a pod takes few system calls: there may be a thousand.
func TestCallsPerPod(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making cgroups at the top takes root")
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("systemd owns the top of the hierarchy here")
	}
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip(err)
	}
	const n = 60
	top, log := pods(t, n), t.TempDir()+"/calls"
	// With the paths of descriptors, by which the calls that are about our cgroups are known.
	out, err := exec.Command(strace, "-f", "-y", "-s", "0", "-o", log, "-e", "trace=file,desc", program(t), "status", "--config=/dev/null", "--state-dir="+t.TempDir(),
		"--cgroup-root="+top, "--cgroups-per-qos", "--json").Output()
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
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, top+"/") && !strings.Contains(line, "resumed>") {
			calls++
		}
	}
	each := float64(calls) / n
	t.Logf("%.1f calls for each pod", each)
	// Twice it is looked what is in it, and then three files of the container are read.
	if each < 10 || each > 26 {
		t.Errorf("%.1f calls for each pod with a container of one process, want 26 at most", each)
	}
}
