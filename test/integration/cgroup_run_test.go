package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// The command is under its limits from its first instruction on, with all that it starts; nothing
// is left of it.
func TestCgroupRun(t *testing.T) {
	b := harness.New(t)
	parent := demo(b)
	path := parent + "/limited"
	run := func(args ...string) harness.Result {
		return tool(b, append([]string{"run", "--path", path, "--pids", "20", "--memory", "32M"}, args...)...)
	}
	pids, memory := dirOf(t, "pids", path), dirOf(t, "memory", path)
	r := run("--", "sh", "-c", "cat /proc/self/cgroup; cat "+filepath.Join(pids, "pids.max")+"; cd "+memory+"; cat memory.max 2> /dev/null || cat memory.limit_in_bytes; sleep 1000 & exit 3")
	if r.Code != 3 || strings.Count(r.Stdout, ":"+path+"\n") == 0 || !strings.HasSuffix(r.Stdout, "\n20\n33554432\n") {
		t.Errorf("status %d:\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if _, err := os.Stat(pids); !os.IsNotExist(err) {
		t.Errorf("the cgroup: %v", err)
	}
	if r := run("sh", "-c", "head -c 100M /dev/zero | tail -c 90M > /dev/null; kill -TERM $$"); r.Code != 143 || !strings.Contains(r.Stderr, "OOM-killed, by --memory 32.0M") {
		t.Errorf("status %d: %s", r.Code, r.Stderr)
	}
	// Another's limit is not blamed on an option that was not given.
	tool(b, "create", parent+"/tight").OK(t)
	if r := tool(b, "set", "memory.limit=16M", "memory.swap=16M", parent+"/tight"); r.Code != 0 { // swap is not counted
		tool(b, "set", "memory.limit=16M", parent+"/tight").OK(t)
	}
	r = tool(b, "run", "--path", parent+"/tight/inner", "sh", "-c", "head -c 100M /dev/zero | tail -c 90M > /dev/null; kill -TERM $$")
	if r.Code != 143 || !strings.Contains(r.Stderr, "OOM-killed, by a limit above it") {
		t.Errorf("status %d: %s", r.Code, r.Stderr)
	}
	if r := run("/no-such-program"); r.Code != 127 {
		t.Errorf("status %d: %s", r.Code, r.Stderr)
	}
	tool(b, "create", path).OK(t)
	run("true").FailsWith(t, 125, "exists already")
	tool(b, "run", "--path", path+"/x", "--memory", "nonsense", "true").FailsWith(t, 125, "nonsense")
}
