package reliability

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// crash is a command that is killed after each of its steps.
type crash struct {
	verb         string
	flags, words []string
	// of gives flags that name what is a worker's own.
	of func(w *worker) []string
	// prepare makes what the command needs, before each run.
	prepare func(w *worker)
	// recover is what an operator does who finds the results: by the number of the run, so that
	// several ways can take turns.
	recover func(t *testing.T, w *worker, run int, about string)
}

// kill is one run: after the step, the process is killed.
type kill struct {
	run     int
	step    call
	process int
}

func (k kill) String() string { return fmt.Sprintf("process %d killed after %s", k.process, k.step) }

// each runs the command once for each of its steps, and the death of each of its processes.
func (c *crash) each(t *testing.T, start func() *worker) {
	t.Helper()
	w := start()
	if c.prepare != nil {
		c.prepare(w)
	}
	calls, o := w.record(c.verb, c.flagsOf(w), c.words)
	o.OK(t)
	c.recover(t, w, 0, "unhurt "+c.verb)
	w.gone(t, o)
	w.end(t)
	var kills []kill
	for _, call := range calls {
		if !call.changes {
			continue
		}
		kills = append(kills, kill{len(kills), call, 0})
		if call.process > 0 {
			kills = append(kills, kill{len(kills), call, call.process})
		}
	}
	var missed atomic.Int64
	inParallel(t, kills, start, func(w *worker, k kill) {
		if c.prepare != nil {
			c.prepare(w)
		}
		o := w.run(c.verb, c.flagsOf(w), c.words, "-at", k.step.at(), "-kill", strconv.Itoa(k.process))
		if !o.hit {
			missed.Add(1) // the two sides of a conversation may come to a call in either order
		}
		if k.process > 0 && o.Code != 0 && o.Message() == "" {
			t.Errorf("%s: status %d, and nothing is said", k, o.Code)
		}
		c.recover(t, w, k.run, k.String())
		w.gone(t, o)
		w.nothingLeft(t, k.String())
	})
	if missed.Load()*20 > int64(len(kills)) {
		t.Errorf("%d of %d steps did not come again", missed.Load(), len(kills))
	}
	if len(kills) == 0 {
		t.Errorf("%d steps were found", len(kills))
	}
	t.Logf("%s: %d steps, %d of them not reached again", c.verb, len(kills), missed.Load())
	harness.Report(t, "kills", len(kills))
}

func (c *crash) flagsOf(w *worker) []string {
	if c.of == nil {
		return c.flags
	}
	return slices.Concat(c.flags, c.of(w))
}

// byForce deletes the container in three ways in turn: at once; when gc has been there; and when it
// has been asked for its state.
func byForce(t *testing.T, w *worker, run int, about string) {
	t.Helper()
	switch run % 3 {
	case 1:
		if r := w.b.Berth("gc"); r.Code != 0 {
			t.Errorf("%s: gc: status %d, %s", about, r.Code, r.Stderr)
		}
		_, err := os.Stat(filepath.Join(w.b.Root, w.c.ID))
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		// What gc leaves is whole.
		if r := w.c.Command("state", nil).Run(); r.Code != 0 {
			t.Errorf("%s: state after gc: %s", about, r.Stderr)
		}
	case 2:
		w.c.Command("state", nil).Run() // may fail, but not hang or harm
		if r := w.b.Berth("list"); r.Code != 0 {
			t.Errorf("%s: list: %s", about, r.Stderr)
		}
	}
	w.force(t, about)
}

func TestKilledCreate(t *testing.T) {
	c := crash{verb: "create", recover: byForce}
	c.each(t, func() *worker { return newWorker(t, "/bin/true") })
}

// With hooks of all kinds, a terminal, a user namespace and files for others.
func TestKilledCreateOfMuch(t *testing.T) {
	harness.NeedNamespace(t, "user")
	c := crash{verb: "run", recover: byForce, flags: []string{"--detach"}}
	c.each(t, func() *worker {
		w := newWorker(t, "/bin/true")
		much(w)
		w.c.Spec.Process.Terminal = false
		return w
	})
}

func TestKilledStart(t *testing.T) {
	c := crash{verb: "start", recover: byForce, prepare: func(w *worker) { w.c.Create() }}
	c.recover = func(t *testing.T, w *worker, run int, about string) {
		byForce(t, w, run, about)
		w.ended(t)
	}
	c.each(t, func() *worker { return newWorker(t, "/inside", "hang") })
}

func TestKilledDelete(t *testing.T) {
	for _, state := range []string{"created", "running", "stopped"} {
		t.Run(state, func(t *testing.T) {
			c := crash{verb: "delete", flags: []string{"--force"}, prepare: func(w *worker) {
				w.c.Create()
				if state != "created" {
					w.c.Start()
				}
				if state == "stopped" {
					w.c.Kill("KILL")
					w.b.WaitGone(w.c.PID)
				}
			}}
			c.recover = func(t *testing.T, w *worker, run int, about string) {
				byForce(t, w, run, about)
				w.ended(t)
			}
			c.each(t, func() *worker { return newWorker(t, "/inside", "hang") })
		})
	}
}

// A command on a running container is killed: the container goes on, can be handled, and takes the
// same command again.
func TestKilledOnARunningContainer(t *testing.T) {
	limits := []string{"--memory", "300000000", "--pids-limit", "200", "--cpu-share", "512"}
	for name, c := range map[string]crash{
		"exec":          {verb: "exec", words: []string{"/bin/true"}},
		"exec detached": {verb: "exec", flags: []string{"--detach"}, words: []string{"/bin/true"}},
		"update":        {verb: "update", flags: limits},
		"pause":         {verb: "pause"},
		"kill":          {verb: "kill", words: []string{"0"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.recover = func(t *testing.T, w *worker, run int, about string) {
				if c.verb == "pause" {
					// It is frozen or not; both can be changed.
					w.c.Command("resume", nil).Run()
				}
				if s := w.c.State(); s.Status != "running" {
					t.Errorf("%s: it is %s", about, s.Status)
				}
				again(t, w, &c, about)
				if c.verb == "pause" {
					w.c.Command("resume", nil).Run().OK(t)
				}
				w.c.Exec(nil, "/bin/true").OK(t)
			}
			c.each(t, func() *worker {
				w := newWorker(t, "/inside", "hang")
				w.c.RunDetached()
				w.kept = append(w.kept, w.c.ID)
				w.mounts = mountinfo(t)
				return w
			})
		})
	}
}

// again calls the command once more.
func again(t *testing.T, w *worker, c *crash, about string) {
	t.Helper()
	flags, pidFile := c.flags, w.b.Path("exec.pid")
	if c.verb == "exec" {
		flags = append(slices.Clone(flags), "--pid-file", pidFile)
	}
	if r := w.c.Command(c.verb, flags, c.words...).Run(); r.Code != 0 {
		t.Errorf("%s: the next %s: %s", about, c.verb, r.Stderr)
	}
	if slices.Contains(flags, "--detach") {
		text, err := os.ReadFile(pidFile)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(string(text))
		if err != nil {
			t.Fatal(err)
		}
		w.gone(t, outcome{pids: []int{0, pid}})
	}
}

// ended takes the status of the container's process, which this process has become the parent of.
func (w *worker) ended(t *testing.T) {
	t.Helper()
	if w.c.PID == 0 {
		return
	}
	w.b.WaitGone(w.c.PID)
	// Not without waiting: as long as a criu traces it, it is that one's to wait for (ptrace(2)).
	if _, err := unix.Wait4(w.c.PID, nil, 0, nil); err != nil && !errors.Is(err, unix.ECHILD) {
		t.Error(err)
	}
	w.c.PID = 0
}
