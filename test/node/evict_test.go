package node

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Where less is left than is to be, the daemon kills a real container of the workloads, the one of
// the lowest priority first, and none that is elsewhere.
func TestEvictionOfRealContainers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making cgroups at the top takes root")
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		t.Skip("systemd owns the top of the hierarchy here")
	}
	host, top := topGroup(t, "evict")
	// A process in a container's cgroup, with its priority.
	start := func(at, score string) *exec.Cmd {
		t.Helper()
		g, err := host.Create(top + at)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		cmd := exec.Command("sh", "-c", "echo "+score+" > /proc/self/oom_score_adj; exec sleep 900")
		if err := g.Start(cmd); err != nil {
			t.Fatal(err)
		}
		for { // until its score is set: it is sleep then
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", cmd.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			if string(name) == "sleep\n" {
				return cmd
			}
			time.Sleep(time.Millisecond)
		}
	}
	later, first := start("/work/docker/00000000000a", "100"), start("/work/docker/00000000000b", "900")
	outside := start("/docker/00000000000c", "1000")
	dir := t.TempDir()
	daemon := exec.Command(program(t), "watch", "--config=/dev/null", "--state-dir="+dir+"/state", "--listen=off", "--kernel-parameters=off", "--oom-score-mode=off", "--berth-parent=off",
		"--cgroup-root="+top+"/work", "--eviction=kill", "--eviction-hard=memory.available<99%")
	var said bytes.Buffer
	daemon.Stderr = &said
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		outside.Process.Kill()
		outside.Wait()
		if t.Failed() {
			t.Logf("it said: %s", &said)
		}
	})
	first.Wait()
	later.Wait()
	for _, cmd := range []*exec.Cmd{first, later} {
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
			t.Errorf("it ended by %v", cmd.ProcessState)
		}
	}
	daemon.Process.Signal(syscall.SIGTERM)
	daemon.Wait()
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", outside.Process.Pid)); err != nil || strings.Contains(string(stat), ") Z ") {
		t.Errorf("the container outside of the workloads: %v, %s", err, stat)
	}
	text := said.String()
	b, a := strings.Index(text, "killed docker/00000000000b"), strings.Index(text, "killed docker/00000000000a")
	if b < 0 || a < b || strings.Count(text, "killed docker/") != 2 {
		t.Error("it did not kill the one with the higher score, and then the other")
	}
}
