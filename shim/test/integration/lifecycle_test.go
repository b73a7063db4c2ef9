package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	cg1 "github.com/containerd/cgroups/v3/cgroup1/stats"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

func TestStatusAndOutput(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		for script, want := range map[string]uint32{"exit 0": 0, "exit 3": 3, "kill -9 $$": 0, "exit 255": 255} {
			b := d.define(engine, sh("echo out; echo err >&2; "+script))
			s := d.pipes(b.id, false)
			if err := b.create(s); err != nil {
				t.Fatal(err)
			}
			if err := b.start(); err != nil {
				t.Fatal(err)
			}
			got := b.wait("")
			// An init ignores the signals that it sends to itself.
			if got != want {
				t.Errorf("%s: status %d, want %d", script, got, want)
			}
			r, err := d.tasks().Delete(d.Context(), &tasks.DeleteTaskRequest{ContainerID: b.id})
			if err != nil || r.ExitStatus != want || r.Pid != b.pid {
				t.Errorf("%s: deleted as %v, %v", script, r, err)
			}
			if out, errs := s.output[0].wait(), s.output[1].wait(); out != "out\n" || errs != "err\n" {
				t.Errorf("%s: output %q and %q", script, out, errs)
			}
			b.undefine()
		}
		b := d.run(engine)
		becomes(t, b.pid, "sleep")
		if err := b.kill(15); err != nil { // without a handler, an init ignores it
			t.Error(err)
		}
		if err := b.kill(9); err != nil {
			t.Error(err)
		}
		if got := b.wait(""); got != 137 {
			t.Errorf("killed: status %d", got)
		}
		b.remove()
	})
}

// becomes waits until a process runs a program: runc answers a start before its
// own init, which handles signals in its own way, has become that.
func becomes(t testing.TB, pid uint32, program string) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("process %d runs %s", pid, program), func() bool {
		name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		return err == nil && string(name) == program+"\n"
	})
}

// The last bytes of a process that ends at once must reach its client.
func TestNoOutputIsLost(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		const lines = 20000
		var want bytes.Buffer
		for i := 1; i <= lines; i++ {
			fmt.Fprintln(&want, i)
		}
		for range 5 {
			b := d.define(engine, args("seq", "1", fmt.Sprint(lines)))
			s := d.pipes(b.id, false)
			if err := b.create(s); err != nil {
				t.Fatal(err)
			}
			if err := b.start(); err != nil {
				t.Fatal(err)
			}
			if got := b.wait(""); got != 0 {
				t.Errorf("status %d", got)
			}
			if got := s.output[0].wait(); got != want.String() {
				t.Fatalf("got %d bytes of %d", len(got), want.Len())
			}
			b.remove()
		}
	})
}

func TestExecs(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		b := d.run(engine)
		defer b.remove()
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				id := fmt.Sprintf("e%d", i)
				s := d.pipes(id, false)
				if err := b.exec(id, s, "sh", "-c", fmt.Sprintf("echo %s; exit %d", id, i)); err != nil {
					t.Error(err)
					return
				}
				if got := b.wait(id); got != uint32(i) {
					t.Errorf("%s: status %d", id, got)
				}
				if got := s.output[0].wait(); got != id+"\n" {
					t.Errorf("%s: output %q", id, got)
				}
				if _, err := b.deleteExec(id); err != nil {
					t.Errorf("%s: delete: %v", id, err)
				}
			}()
		}
		wg.Wait()

		// A signal to an exec, and input until its end.
		if err := b.exec("killed", stdio{}, "sleep", "1000"); err != nil {
			t.Fatal(err)
		}
		if _, err := d.tasks().Kill(d.Context(), &tasks.KillRequest{ContainerID: b.id, ExecID: "killed", Signal: 15}); err != nil {
			t.Error(err)
		}
		if got := b.wait("killed"); got != 143 {
			t.Errorf("killed exec: status %d", got)
		}
		s := d.pipes("cat", false)
		if err := b.exec("cat", s, "cat"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.writer.WriteString("some input\n"); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the input comes back", func() bool { return s.output[0].String() == "some input\n" })
		s.writer.Close()
		if _, err := d.tasks().CloseIO(d.Context(), &tasks.CloseIORequest{ContainerID: b.id, ExecID: "cat", Stdin: true}); err != nil {
			t.Fatal(err)
		}
		if got := b.wait("cat"); got != 0 {
			t.Errorf("cat: status %d", got)
		}
		for _, id := range []string{"killed", "cat"} {
			if _, err := b.deleteExec(id); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTerminal(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		b := d.define(engine, sh("stty size; read x; stty size; echo got $x; exit 4"), func(s *specs.Spec) { s.Process.Terminal = true })
		s := d.pipes(b.id, true)
		if err := b.create(s); err != nil {
			t.Fatal(err)
		}
		resize := func(w, h uint32) {
			t.Helper()
			if _, err := d.tasks().ResizePty(d.Context(), &tasks.ResizePtyRequest{ContainerID: b.id, Width: w, Height: h}); err != nil {
				t.Fatal(err)
			}
		}
		resize(81, 25)
		if err := b.start(); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "first size", func() bool { return strings.Contains(s.output[0].String(), "25 81") })
		resize(132, 50)
		if _, err := s.writer.WriteString("word\n"); err != nil {
			t.Fatal(err)
		}
		if got := b.wait(""); got != 4 {
			t.Errorf("status %d", got)
		}
		defer b.remove()
		if out := s.output[0].wait(); !strings.Contains(out, "50 132\r\n") || !strings.Contains(out, "got word\r\n") { // with carriage returns: clients show it in raw mode
			t.Errorf("output %q", out)
		}
	})
}

// runTwo runs a container and adds a process to it, "e"; both sleep.
func (d *daemon) runTwo(engine string) *box {
	d.T.Helper()
	b := d.run(engine)
	if err := b.exec("e", stdio{}, "sleep", "1000"); err != nil {
		d.T.Fatal(err)
	}
	added, err := d.tasks().Get(d.Context(), &tasks.GetRequest{ContainerID: b.id, ExecID: "e"})
	if err != nil {
		d.T.Fatal(err)
	}
	becomes(d.T, b.pid, "sleep") // runc's init has threads, which count
	becomes(d.T, added.Process.Pid, "sleep")
	return b
}

func TestPauseUpdatePidsStats(t *testing.T) {
	withSetups(t, func(t *testing.T, d *daemon, engine string) {
		b := d.runTwo(engine)
		defer b.remove()
		r, err := d.tasks().ListPids(d.Context(), &tasks.ListPidsRequest{ContainerID: b.id})
		if err != nil {
			t.Fatal(err)
		}
		execs := 0
		for _, p := range r.Processes {
			if p.Info != nil {
				execs++
			}
		}
		if len(r.Processes) != 2 || execs != 1 {
			t.Errorf("processes: %v", r.Processes)
		}
		if _, err := d.tasks().Pause(d.Context(), &tasks.PauseTaskRequest{ContainerID: b.id}); err != nil {
			t.Fatal(err)
		}
		if got := b.status(); got != "PAUSED" {
			t.Errorf("paused: %s", got)
		}
		wantCode(t, "a second pause", codes.FailedPrecondition, func() error {
			_, err := d.tasks().Pause(d.Context(), &tasks.PauseTaskRequest{ContainerID: b.id})
			return err
		})
		wantCode(t, "exec while paused", codes.FailedPrecondition, func() error { return b.exec("e2", stdio{}, "true") })
		if _, err := d.tasks().Resume(d.Context(), &tasks.ResumeTaskRequest{ContainerID: b.id}); err != nil {
			t.Fatal(err)
		}
		if got := b.status(); got != "RUNNING" {
			t.Errorf("resumed: %s", got)
		}
		m, err := d.tasks().Metrics(d.Context(), &tasks.MetricsRequest{})
		if err != nil || len(m.Metrics) != 1 {
			t.Fatalf("metrics: %v, %v", m, err)
		}
		switch url := m.Metrics[0].Data.TypeUrl; url {
		case "io.containerd.cgroups.v1.Metrics":
			var v1 cg1.Metrics
			if err := proto.Unmarshal(m.Metrics[0].Data.Value, &v1); err != nil || v1.Memory.GetUsage().GetUsage() == 0 || v1.CPU.GetUsage().GetTotal() == 0 || v1.Pids.GetCurrent() != 2 {
				t.Errorf("metrics: %v, %v", &v1, err)
			}
		case "io.containerd.cgroups.v2.Metrics":
		default:
			t.Errorf("metrics of type %s", url)
		}
		pids := int64(57)
		resources, err := json.Marshal(&specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &pids}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = d.tasks().Update(d.Context(), &tasks.UpdateTaskRequest{
			ContainerID: b.id, Resources: any(t, "types.containerd.io/opencontainers/runtime-spec/1/linux/Resources", resources),
		})
		if err != nil {
			t.Fatal(err)
		}
		limits, _ := filepath.Glob("/sys/fs/cgroup/*" + d.Cgroup + "/" + b.id + "/pids.max")
		unified, _ := filepath.Glob("/sys/fs/cgroup" + d.Cgroup + "/" + b.id + "/pids.max")
		for _, path := range append(limits, unified...) {
			if text, _ := os.ReadFile(path); string(text) != "57\n" {
				t.Errorf("%s: %q", path, text)
			}
		}
	})
}
