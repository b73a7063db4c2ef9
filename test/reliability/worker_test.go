package reliability

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// A worker makes one run after another, in a state root of its own. Several work side by side.
type worker struct {
	b    *harness.Box
	tool string
	c    *harness.Container // what the runs are about
	kept []string           // containers that are meant to be there
	// whole is a container that nothing is done to. It has to stay as it is.
	whole  *harness.Container
	mounts string
	runs   int
}

func newWorker(t *testing.T, args ...string) *worker {
	t.Helper()
	b := harness.New(t)
	w := &worker{b: b, tool: harness.Fault(t), c: b.Container(args...), whole: b.Container("/inside", "hang")}
	w.whole.RunDetached()
	w.kept = []string{w.whole.ID}
	w.mounts = mountinfo(t)
	return w
}

// end is called when the worker has done its runs.
func (w *worker) end(t *testing.T) {
	t.Helper()
	w.nothingLeft(t, "all of them")
	if s := w.whole.State(); s.Status != "running" {
		t.Errorf("the container that nothing was done to is %s", s.Status)
	}
	w.whole.Exec(nil, "/bin/true").OK(t)
	w.whole.Delete("--force")
	w.whole.WaitExit()
}

// inParallel gives each worker its share of the work, in order.
func inParallel[T any](t *testing.T, work []T, start func() *worker, do func(w *worker, item T)) {
	t.Helper()
	const workers = 2
	var group sync.WaitGroup
	var all []*worker
	for range workers {
		all = append(all, start())
	}
	for i, w := range all {
		group.Add(1)
		go func() {
			defer group.Done() // also where the test is ended by runtime.Goexit
			for j := i; j < len(work); j += workers {
				if t.Failed() && j > 200*workers {
					return // the first failures tell enough
				}
				do(w, work[j])
			}
		}()
	}
	group.Wait()
	for _, w := range all {
		w.end(t)
	}
}

// outcome is how a run under test/fault ended.
type outcome struct {
	harness.Result
	hit  bool // the call that was to go wrong has come
	pids []int
}

// run calls the engine about the container, with flags for test/fault.
func (w *worker) run(verb string, flags, words []string, fault ...string) outcome {
	t := w.b.T
	t.Helper()
	w.runs++
	hit, pids := w.b.Path("hit"), w.b.Path("pids")
	_ = os.Remove(hit)
	cmd := w.c.Command(verb, flags, words...)
	cmd.Wrap = append([]string{w.tool, "-hit", hit, "-pids", pids}, append(fault, "--")...)
	o := outcome{Result: cmd.Run()}
	_, err := os.Stat(hit)
	o.hit = err == nil
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Error(err)
	}
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Error(err)
		}
		o.pids = append(o.pids, pid)
	}
	return o
}

// gone waits until the processes of a run have ended, and takes the status of those that came to
// this process.
func (w *worker) gone(t *testing.T, o outcome) {
	t.Helper()
	for _, pid := range o.pids[min(1, len(o.pids)):] {
		w.b.WaitGone(pid)
		if _, err := unix.Wait4(pid, nil, 0, nil); err != nil && !errors.Is(err, unix.ECHILD) {
			t.Errorf("wait for process %d: %v", pid, err)
		}
	}
}

// force deletes the container, in whatever state it is.
func (w *worker) force(t *testing.T, about string) {
	t.Helper()
	if r := w.c.Command("delete", []string{"--force"}).Run(); r.Code != 0 {
		t.Errorf("%s: delete --force: status %d, %s", about, r.Code, r.Stderr)
	}
}

// nothingLeft looks for what a container is made of.
func (w *worker) nothingLeft(t *testing.T, about string) {
	t.Helper()
	if entries, err := os.ReadDir(w.b.Root); err != nil {
		t.Errorf("%s: %v", about, err)
	} else {
		for _, e := range entries {
			if !slices.Contains(w.kept, e.Name()) && e.Name() != harness.RootMark {
				inside, _ := os.ReadDir(filepath.Join(w.b.Root, e.Name()))
				t.Errorf("%s: left behind in the state root: %s, with %v", about, e.Name(), inside)
				_ = os.RemoveAll(filepath.Join(w.b.Root, e.Name()))
			}
		}
	}
	for _, h := range hierarchies(t) {
		dir := filepath.Join(h.Dir, w.c.Spec.Linux.CgroupsPath)
		if _, err := os.Stat(dir); err == nil && !slices.Contains(w.kept, w.c.ID) {
			procs, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
			t.Errorf("%s: left behind: cgroup %s, with processes %q", about, dir, procs)
			_ = unix.Rmdir(dir)
		}
	}
	now := mountinfo(t)
	for line := range strings.Lines(now) {
		// Those of others may vanish with what they are mounted on.
		if !strings.Contains(w.mounts, line) {
			t.Errorf("%s: left behind: mount %s", about, line)
		}
	}
	w.mounts = now
	if w.runs%25 == 0 {
		if s := w.whole.State(); s.Status != "running" {
			t.Errorf("%s: the container that nothing is done to is %s", about, s.Status)
		}
	}
}

var hierarchies = func() func(t testing.TB) []harness.Hierarchy {
	var once sync.Once
	var found []harness.Hierarchy
	return func(t testing.TB) []harness.Hierarchy {
		once.Do(func() { found = harness.Hierarchies(t) })
		return found
	}
}()

func mountinfo(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A call is one that the engine makes.
type call struct {
	process int
	name    string
	n       int
	changes bool   // it has an effect outside of its process
	text    string // its path, where it has one
}

func (c call) at() string { return fmt.Sprintf("%d:%s:%d", c.process, c.name, c.n) }

func (c call) String() string { return c.at() + " " + c.text }

// record has the calls of a command written down.
func (w *worker) record(verb string, flags, words []string) ([]call, outcome) {
	t := w.b.T
	t.Helper()
	file := w.b.Path("calls")
	o := w.run(verb, flags, words, "-record", file)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var calls []call
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		var c call
		fields := strings.SplitN(line, "\t", 3)
		parts := strings.Split(fields[0], ":")
		if len(fields) != 3 || len(parts) != 3 {
			t.Fatalf("a record that means nothing: %q", line)
		}
		c.process, _ = strconv.Atoi(parts[0])
		c.name, c.changes, c.text = parts[1], fields[1] == "step", fields[2]
		c.n, _ = strconv.Atoi(parts[2])
		calls = append(calls, c)
	}
	return calls, o
}
