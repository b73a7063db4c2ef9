package sys

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestWatchLess looks at all threads of a process of its own: one has the slack, and
// it is the one that the runtime makes before all others.
func TestWatchLess(t *testing.T) {
	const variable = "BERTH_TEST_WATCH"
	if os.Getenv(variable) == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestWatchLess$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v:\n%s", err, out)
		}
		return
	}
	first, ok := firstThread()
	if !ok {
		t.Fatal("/proc/self/task does not begin with this process")
	}
	slack := "/proc/" + first + "/timerslack_ns"
	before, err := os.ReadFile(slack)
	if err != nil {
		t.Skip("slack can't be seen here: ", err)
	}
	if err := os.WriteFile(slack, before, 0); err != nil {
		t.Skip("slack can't be changed here: ", err)
	}
	// Only the watching one wakes by itself while a goroutine computes.
	for begun, end := switches(t, first), time.Now().Add(10*time.Second); switches(t, first) < begun+5; {
		if time.Now().After(end) {
			t.Fatalf("thread %s sleeps: it is not the watching one", first)
		}
	}
	WatchLess()
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		name := thread.Name()
		text, err := os.ReadFile("/proc/" + name + "/timerslack_ns")
		if err != nil {
			t.Fatal(err)
		}
		if less := strings.TrimSpace(string(text)) == watchEvery; less != (name == first) {
			t.Errorf("thread %s has a slack of %q; the watching one is %s", name, text, first)
		}
	}
}

// switches is how often a thread has waited for something.
func switches(t *testing.T, tid string) int {
	text, err := os.ReadFile("/proc/self/task/" + tid + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:\t")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.Atoi(line)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
