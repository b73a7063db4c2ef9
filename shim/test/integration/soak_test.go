package integration

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-runtime/berth/internal/test/wait"
)

// rounds is how often a test does what it does: some times, or as often as it
// takes for a rare fault to show itself, when BERTH_SOAK is set (make soak).
func rounds(some, many int) int {
	if os.Getenv("BERTH_SOAK") != "" {
		return many
	}
	return some
}

// limited is a number, or the one that a variable has for a machine with more to do, if that is
// less.
func limited(t *testing.T, variable string, n int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return n
	}
	most, err := strconv.Atoi(text)
	if err != nil || most < 1 {
		t.Fatalf("%s=%s is no number of at least 1", variable, text)
	}
	return min(n, most)
}

// Many containers are created at once, run all together, and are removed at once.
func TestManyAtOnce(t *testing.T) {
	withReleases(t, func(t *testing.T, d *daemon) {
		boxes := make([]*box, rounds(40, 200))
		for i := range boxes {
			boxes[i] = d.define("", sh(fmt.Sprintf("trap 'exit %d' TERM; while :; do sleep 1000 & wait $!; done", i%100)))
		}
		atOnce := func(what string, do func(*box) error) {
			t.Helper()
			began := time.Now()
			var wg sync.WaitGroup
			for _, b := range boxes {
				wg.Go(func() {
					if err := do(b); err != nil {
						t.Errorf("%s %s: %v", what, b.id, err)
					}
				})
			}
			wg.Wait()
			t.Logf("%s: %d in %s", what, len(boxes), time.Since(began).Round(time.Millisecond))
		}
		atOnce("create", func(b *box) error { return b.create(stdio{}) })
		atOnce("start", (*box).start)
		if n := len(d.Shims()); n != len(boxes) {
			t.Errorf("%d shims for %d containers", n, len(boxes))
		}
		for _, b := range boxes {
			if got := b.status(); got != "RUNNING" {
				t.Errorf("%s is %s", b.id, got)
			}
		}
		atOnce("kill and remove", func(b *box) error {
			b.remove()
			return nil
		})
	})
}

// footprint is what may grow with the lives of containers.
type footprint struct {
	memory                                          int // KiB, of the heap, stacks and data
	descriptors, threads, routines, mounts, cgroups int
}

// Many rounds of create, exec, kill and delete leave the shim, and the host, as
// they were.
func TestNoGrowth(t *testing.T) {
	withReleases(t, func(t *testing.T, d *daemon) {
		keeper := d.run("")
		defer keeper.remove()
		shims := d.Shims()
		if len(shims) != 1 {
			t.Fatalf("%d shims", len(shims))
		}
		// As much as it ever needs at a time, such as for threads, it has after some.
		for range 50 {
			d.round(t, keeper)
		}
		// A shim gives memory back when it has had nothing to do for two seconds.
		time.Sleep(3 * time.Second)
		before := d.footprint(t, shims[0])
		n := rounds(50, 2000)
		for i := range n {
			d.round(t, keeper)
			if t.Failed() {
				t.Fatalf("in round %d", i)
			}
		}
		// Memory comes in pages, and in spans of a few for each size of an object. A leak
		// of 100 bytes a round is 200 KiB after all of them.
		const allowance = 192 // KiB
		// Threads stay when there were once as many calls at a time, which a busy machine
		// may bring about at any time.
		const perThread, threads = 32, 20
		var after footprint
		wait.Until(t, fmt.Sprintf("all is as it was before, %+v", before), func() bool {
			after = d.footprint(t, shims[0])
			return after.memory <= before.memory+allowance+perThread*max(after.threads-before.threads, 0) &&
				after.descriptors <= before.descriptors && after.routines <= before.routines &&
				after.mounts <= before.mounts && after.cgroups <= before.cgroups
		})
		t.Logf("before %+v\nafter %d rounds %+v", before, n, after)
		if grown := after.threads - before.threads; grown > threads {
			t.Errorf("the shim has %d threads more", grown)
		}
	})
}

// round is a life with an exec, in the shim of another container.
func (d *daemon) round(t *testing.T, keeper *box) {
	b := d.define("", annotation(groupAnnotation, keeper.id))
	s := d.pipes(b.id, false)
	if err := b.create(s); err != nil {
		t.Fatal(err)
	}
	if err := b.start(); err != nil {
		t.Fatal(err)
	}
	e := d.pipes("e", false)
	if err := b.exec("e", e, "sh", "-c", "echo x; read y"); err != nil {
		t.Fatal(err)
	}
	b.kill(9)
	b.wait("e")
	b.wait("")
	if _, err := b.deleteExec("e"); err != nil {
		t.Error(err)
	}
	if got := e.output[0].wait(); got != "x\n" && got != "" {
		t.Errorf("output %q", got)
	}
	b.remove()
	for _, io := range []stdio{s, e} {
		io.writer.Close()
		for _, path := range []string{io.in, io.out, io.err} {
			os.Remove(path)
		}
	}
}

func (d *daemon) footprint(t *testing.T, shim int) (f footprint) {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", shim))
	if err != nil {
		t.Fatal(err)
	}
	f.descriptors = len(entries)
	f.threads = field(t, fmt.Sprintf("/proc/%d/status", shim), "Threads:")
	f.memory = field(t, fmt.Sprintf("/proc/%d/smaps_rollup", shim), "Anonymous:")
	f.mounts, f.cgroups = len(d.Mounts()), len(d.Cgroups())
	f.routines = d.routines(t, shim)
	return f
}

// field is the number behind a word at the beginning of a line.
func field(t *testing.T, path, word string) (n int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := bytes.Cut(text, []byte("\n"+word))
	if _, err := fmt.Sscan(string(after), &n); err != nil {
		t.Fatalf("%s in %s: %v", word, path, err)
	}
	return n
}

// routines counts goroutines by what the shim's debug socket says of them. There
// is one since the daemon logs for debugging.
func (d *daemon) routines(t *testing.T, shim int) int {
	t.Helper()
	cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", shim))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(cmdline), "\x00-debug-socket\x00")
	if !found {
		t.Fatalf("the shim has no debug socket: %q", cmdline)
	}
	socket, _, _ := strings.Cut(after, "\x00")
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET /debug/pprof/goroutine HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	n := bytes.Count(answer, []byte("\ngoroutine "))
	if n == 0 {
		t.Fatalf("the shim says no goroutines: %q", answer)
	}
	return n
}
