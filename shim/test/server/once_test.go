package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"github.com/containerd/ttrpc"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// A shim with a keeper is killed at each of its system calls in turn, before the call is made or
// after it, and so whatever it is in the middle of. Its client sees nothing of that: each call of a
// container's life is answered as ever, on the one connection, each program has run once and has
// written each line once, and each event comes once and in its order.
//
// There are some thousands of such calls in a life: without BERTH_SOAK only some are tried, others
// on each day (BERTH_SEED).
func TestOnceWhereverKilled(t *testing.T) { newKept(t).killedAtEachCall(writing) }

// The shim that comes after a killed one is killed, too, at some call of what it takes over, or
// later.
func TestOnceThoughKilledTwice(t *testing.T) { newKept(t).killedTwice(writing) }

// life is what is done while the shim is killed at one of its calls: what the container executes,
// what its client does, and what must have come of it.
type life struct {
	script string
	lead   func(b *box) error
	check  func(b *box)
	calls  int // that it has at least
}

// writing is a container with an exec, both of which write.
func writing(id, shared string) *life {
	out, exec := (*pipe)(nil), filepath.Join(shared, "exec-output")
	return &life{
		script: "echo run >> /shared/init; i=0; while [ $i -lt 50 ]; do i=$((i+1)); echo $i; done; sleep 1000",
		lead: func(b *box) error {
			out = b.n.pipe("out-" + id).read()
			return b.lifeOf(out, exec)
		},
		check: func(b *box) {
			<-out.done
			b.n.ranOnce(b, shared, out, exec)
		},
		calls: 1000,
	}
}

// killedAtEachCall leads a life for each call that the shim makes in it, or for some of them.
func (n *node) killedAtEachCall(of func(id, shared string) *life) {
	n.t.Helper()
	stride := 97 // some twenty, each twice
	if os.Getenv("BERTH_SOAK") != "" {
		stride = 1
	}
	first := 1 + int(harness.DaySeed(n.t)%uint64(stride))
	if text := os.Getenv("BERTH_STEPS"); text != "" { // FIRST:STRIDE
		_, err := fmt.Sscanf(text, "%d:%d", &first, &stride)
		n.must(err)
	}
	steps, step := 0, first
	for ; !n.t.Failed(); step += stride {
		after := n.liveOnce(step, false, 0, of)
		if !after || n.t.Failed() {
			break
		}
		steps++
		if n.liveOnce(step, true, 0, of) {
			steps++
		}
	}
	// However few of them are tried.
	if least := of("", "").calls / 2; step < least {
		n.t.Errorf("a life has only %d calls, want %d", step, least)
	}
	n.t.Logf("killed at %d calls", steps)
	harness.Report(n.t, "keeper steps", int64(steps))
}

// killedTwice leads some lives in which the shim is killed at a call, and the next one at another.
func (n *node) killedTwice(of func(id, shared string) *life) {
	n.t.Helper()
	lives := 24
	if os.Getenv("BERTH_SOAK") != "" {
		lives = 2000
	}
	// A shim that takes over makes about so many calls before it serves.
	const takesOver = 400
	calls, random := of("", "").calls, rand.New(rand.NewPCG(harness.DaySeed(n.t), 0))
	for i := 0; i < lives && !n.t.Failed(); i++ {
		n.liveOnce(1+random.IntN(calls), random.IntN(2) == 0, 1+random.IntN(takesOver), of)
	}
	harness.Report(n.t, "keeper steps, two at a time", int64(lives))
}

// liveOnce leads a life in which the shim is killed at a call and, if then is not 0, the one after
// it so many calls later. It reports false where there are fewer calls.
func (n *node) liveOnce(step int, before bool, then int, of func(id, shared string) *life) bool {
	n.t.Helper()
	id := fmt.Sprintf("c%d-%v-%d", step, before, then)
	shared := filepath.Join(n.dir, "shared-"+id)
	n.must(os.Mkdir(shared, 0o755))
	life := of(id, shared)
	spec := n.spec(id, "sh", "-c", life.script)
	spec.Mounts = append(spec.Mounts, specs.Mount{Destination: "/shared", Type: "bind", Source: shared, Options: []string{"bind", "rw"}})
	spec.Linux.Resources = &specs.LinuxResources{}
	dir := n.bundle(id, spec)
	hit, pids := filepath.Join(n.dir, "hit"), filepath.Join(n.dir, "pids")
	if err := os.Remove(hit); err != nil && !errors.Is(err, os.ErrNotExist) {
		n.t.Fatal(err)
	}
	options := []string{"-step", strconv.Itoa(step), "-then", strconv.Itoa(then), "-kept", "-follow", "-hit", hit, "-pids", pids}
	if before {
		options = append(options, "-before")
	}
	tracer, answer := n.startUnder(id, dir, options...)
	defer answer.Close()
	text, err := io.ReadAll(answer)
	n.must(err)
	conn, err := net.Dial("unix", socketIn(text))
	n.must(err)
	client := ttrpc.NewClient(conn)
	b := &box{shim: &shim{n: n, client: client, TTRPCTaskService: taskapi.NewTTRPCTaskClient(client)}, id: id, dir: dir}
	b.shim.pid, err = b.keeper()
	for kills := 0; kills < 2 && (errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)); kills++ {
		b.shim.pid, err = b.keeper() // the shim was killed right behind its answer
	}
	n.must(err)
	b.shim.pidfd, err = unix.PidfdOpen(b.shim.pid, 0)
	n.must(err)
	n.mu.Lock()
	n.shims = append(n.shims, b.shim)
	n.mu.Unlock()

	failed := life.lead(b)
	client.Close()
	exit := tracer.Wait()
	at, err := os.ReadFile(hit)
	there := err == nil
	if failed != nil {
		n.t.Errorf("%v", failed)
		b.kill9()
		n.cleanUp(b)
	} else {
		b.gone()
		life.check(b)
	}
	if exit.Status == 126 {
		text, _ := os.ReadFile(filepath.Join(n.dir, "said"))
		n.t.Errorf("test/fault: %s", text)
	}
	n.nothingLeft(id)
	if n.t.Failed() {
		when := "after"
		if before {
			when = "before"
		}
		n.t.Logf("killed %s call %d, and %d calls later if that is not 0, last %s", when, step, then, at)
	}
	return there
}

// lifeOf makes all calls of a container's life, in which an exec writes to a file; none may fail.
func (b *box) lifeOf(out *pipe, exec string) error {
	ctx, id := b.n.ctx(), b.id
	process, err := json.Marshal(&specs.Process{Args: []string{"sh", "-c", "echo run >> /shared/exec; seq 1 50; exit 8"}, Cwd: "/", Env: []string{"PATH=/bin"}})
	if err != nil {
		return err
	}
	waited := make(chan error, 1)
	for _, step := range []struct {
		name string
		call func() error
	}{
		{"create", func() error { return b.create(func(r *taskapi.CreateTaskRequest) { r.Stdout = out.path }) }},
		{"start", func() error { return b.begin("") }},
		{"wait", func() error { go func() { waited <- b.endsWith("", 137) }(); return nil }},
		{"exec", func() error {
			_, err := b.Exec(ctx, &taskapi.ExecProcessRequest{ID: id, ExecID: "e", Stdout: "file://" + exec, Spec: &anypb.Any{Value: process}})
			return err
		}},
		{"start e", func() error { return b.begin("e") }},
		{"wait e", func() error { return b.endsWith("e", 8) }},
		{"delete e", func() error { return b.delete("e") }},
		{"exec f", func() error { return b.addExec("f", "sleep", "1000") }},
		{"start f", func() error { return b.begin("f") }},
		{"pause", func() error { _, err := b.Pause(ctx, &taskapi.PauseRequest{ID: id}); return err }},
		{"resume", func() error { _, err := b.Resume(ctx, &taskapi.ResumeRequest{ID: id}); return err }},
		{"update", func() error {
			_, err := b.Update(ctx, &taskapi.UpdateTaskRequest{ID: id, Resources: &anypb.Any{Value: []byte(`{"pids":{"limit":50}}`)}})
			return err
		}},
		{"kill f", func() error {
			_, err := b.Kill(ctx, &taskapi.KillRequest{ID: id, ExecID: "f", Signal: uint32(unix.SIGTERM)})
			return err
		}},
		{"wait f", func() error { return b.endsWith("f", 143) }},
		{"delete f", func() error { return b.delete("f") }},
		{"output", func() error {
			wait.Until(b.n.t, "the output", func() bool { return len(out.String()) >= len(linesOf(50)) })
			return nil
		}},
		{"kill", func() error { return b.kill(uint32(unix.SIGKILL)) }},
		{"wait", func() error { return <-waited }},
		{"delete", func() error { return b.delete("") }},
		{"shutdown", func() error { _, err := b.Shutdown(ctx, &taskapi.ShutdownRequest{}); return err }},
	} {
		err := step.call()
		if step.name == "shutdown" && errors.Is(err, ttrpc.ErrClosed) {
			err = nil // that it has gone is an answer
		}
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// ranOnce checks what has come of a life.
func (n *node) ranOnce(b *box, shared string, out *pipe, exec string) {
	n.t.Helper()
	for _, name := range []string{"init", "exec"} {
		if text, err := os.ReadFile(filepath.Join(shared, name)); err != nil || string(text) != "run\n" {
			n.t.Errorf("the program of %s has run so: %q, %v", name, text, err)
		}
	}
	if got := out.String(); got != linesOf(50) {
		n.t.Errorf("output of init: %q", got)
	}
	if got, err := os.ReadFile(exec); err != nil || string(got) != linesOf(50) {
		n.t.Errorf("output of exec: %q, %v", got, err)
	}
	want := []string{"create", "start", "exec-added", "exec-started", "exit e 8", "delete", "exec-added", "exec-started",
		"paused", "resumed", "exit f 143", "delete", "exit " + b.id + " 137", "delete"}
	wait.Until(n.t, "the events", func() bool { return len(n.seen(b.id)) >= len(want) })
	if got := n.seen(b.id); !slices.Equal(got, want) {
		n.t.Errorf("events %q", got)
	}
	if left, _ := filepath.Glob(filepath.Join(n.dir, "s/*")); len(left) > 0 {
		n.t.Errorf("left: %s", strings.Join(left, " "))
	}
}
