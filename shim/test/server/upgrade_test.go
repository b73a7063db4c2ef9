package server_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sandboxapi "github.com/containerd/containerd/api/runtime/sandbox/v1"
	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// upgrade has the command upgrade a shim.
func (n *node) upgrade(id string) (string, error) {
	n.t.Helper()
	out, err := n.call(n.dir, nil, "-namespace", namespace, "-address", filepath.Join(n.dir, "c.sock"), "-id", id, "upgrade")
	return string(out), err
}

// linesOf are the lines from 1 to n.
func linesOf(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// counting writes numbered lines, and ends with a status.
func counting(lines, status int) []string {
	return []string{"sh", "-c", "echo $$ > /tmp/added; " + count(lines) + fmt.Sprintf("exit %d", status)}
}

// countingFirst is counting for a container's first process: it ends after one that is added, which
// would be killed with it.
func countingFirst(lines, status int) []string {
	return []string{"sh", "-c", count(lines) + "until [ -s /tmp/added ]; do sleep 0.02; done; read added < /tmp/added; " +
		fmt.Sprintf("while kill -0 $added 2> /tmp/gone; do sleep 0.02; done; exit %d", status)}
}

func count(lines int) string {
	return fmt.Sprintf("i=0; while [ $i -lt %d ]; do i=$((i+1)); echo $i; done; ", lines)
}

// A shim is upgraded again and again, while a container and an exec in it write, a terminal is
// talked to, and clients wait for all of them.
func TestUpgraded(t *testing.T) { upgradedAgainAndAgain(t, func(*box, int) {}) }

// The same with a keeper, which executes the new programs; now and then the shim is killed besides.
func TestUpgradedWithKeeper(t *testing.T) {
	t.Setenv("BERTH_SHIM_KEEPER", "1")
	upgradedAgainAndAgain(t, func(b *box, upgrades int) {
		if upgrades == 0 {
			b.shim.keeperOf(uint32(b.shim.pid))
		}
		if upgrades%2 == 0 && upgrades < 8 { // a fifth time within a minute would be too many
			b.killed()
		}
	})
}

func upgradedAgainAndAgain(t *testing.T, before func(b *box, upgrades int)) {
	n := newNode(t)
	const lines = 60000
	out, exec, err := n.pipe("out").read(), n.pipe("exec").read(), n.pipe("err").read()
	b := n.define("c", n.spec("c", countingFirst(lines, 7)...))
	n.must(b.create(func(r *taskapi.CreateTaskRequest) { r.Stdout, r.Stderr = out.path, err.path }))
	waited := make(chan uint32, 1)
	wait := func(id string, to chan uint32) {
		r, err := b.Wait(context.Background(), &taskapi.WaitRequest{ID: b.id, ExecID: id})
		if err != nil {
			t.Errorf("wait for %q: %v", id, err)
		}
		to <- r.GetExitStatus()
	}
	go wait("", waited)
	n.must(b.begin(""))
	n.must(b.addExecTo("e", exec.path, counting(lines/2, 8)...))
	n.must(b.begin("e"))
	execWaited := make(chan uint32, 1)
	go wait("e", execWaited)

	upgrades := 0
	const least = 5 // also on a machine that is so busy that the processes have ended by then
	for ; len(waited)+len(execWaited) < 2 || upgrades < least; upgrades++ {
		before(b, upgrades)
		text, err := n.upgrade("c")
		if err != nil {
			t.Fatalf("upgrade %d: %v", upgrades, err)
		}
		if !strings.Contains(text, "upgraded from") {
			t.Fatalf("upgrade says %q", text)
		}
	}
	t.Logf("%d upgrades", upgrades)
	if got := <-waited; got != 7 {
		t.Errorf("status %d", got)
	}
	if got := <-execWaited; got != 8 {
		t.Errorf("status of the exec %d", got)
	}
	n.must(b.delete("e"))
	n.must(b.delete(""))
	<-out.done
	<-exec.done
	if got := out.String(); got != linesOf(lines) {
		t.Errorf("output is not what was written: %d bytes, want %d", len(got), len(linesOf(lines)))
	}
	if got := exec.String(); got != linesOf(lines/2) {
		t.Errorf("output of the exec is not what was written: %d bytes, want %d", len(got), len(linesOf(lines/2)))
	}
	b.shutdown()
	b.gone()
	n.wantEvents("c", "create", "start", "exec-added", "exec-started", "exit e 8", "exit c 7", "delete", "delete")
}

// More of what a shim may be in the middle of when it is upgraded: a terminal that is talked to,
// input that the process does not read yet, a container that is only created, one that has ended
// and not been deleted, and a pause.
func TestUpgradedInEveryState(t *testing.T) {
	n := newNode(t)
	upgrade := func() {
		t.Helper()
		_, err := n.upgrade("c")
		n.must(err)
	}
	out := n.pipe("out").read()
	in := n.dir + "/in"
	n.must(unix.Mkfifo(in, 0o600))
	writer, err := os.OpenFile(in, os.O_RDWR, 0)
	n.must(err)
	defer writer.Close()
	spec := n.spec("c", "sh", "-c", "while read x; do echo got $x; done; exit 4")
	spec.Process.Terminal = true
	c := n.define("c", spec)
	n.must(c.create(func(r *taskapi.CreateTaskRequest) { r.Stdin, r.Stdout, r.Terminal = in, out.path, true }))
	upgrade()
	n.must(c.begin(""))
	for i := range 5 {
		fmt.Fprintf(writer, "%d\n", i)
		upgrade()
		wait.Until(n.t, "the answer of the terminal", func() bool { return strings.Contains(out.String(), fmt.Sprintf("got %d\r\n", i)) })
	}
	_, err = c.ResizePty(n.ctx(), &taskapi.ResizePtyRequest{ID: "c", Width: 90, Height: 30})
	n.must(err)

	late := n.pipe("late").read()
	n.must(unix.Mkfifo(in+"2", 0o600))
	writer2, err := os.OpenFile(in+"2", os.O_RDWR, 0)
	n.must(err)
	d := c.join("d", n.spec("d", "sh", "-c", "read x; cat; exit 5"))
	n.must(d.create(func(r *taskapi.CreateTaskRequest) { r.Stdin, r.Stdout = in+"2", late.path }))
	text := linesOf(20000) // more than pipes have room for
	go func() {
		fmt.Fprint(writer2, text)
		writer2.Close()
	}()
	upgrade()
	upgrade()
	n.must(d.begin(""))
	upgrade()
	_, err = d.CloseIO(n.ctx(), &taskapi.CloseIORequest{ID: "d", Stdin: true})
	n.must(err)
	if got := d.wait(""); got != 5 {
		t.Errorf("status %d", got)
	}
	upgrade()
	if got := d.wait(""); got != 5 {
		t.Errorf("status after the upgrade %d", got)
	}
	n.must(d.delete(""))
	<-late.done
	if got, want := late.String(), strings.TrimPrefix(text, "1\n"); got != want {
		t.Errorf("%d bytes came back, want %d", len(got), len(want))
	}

	_, err = c.Pause(n.ctx(), &taskapi.PauseRequest{ID: "c"})
	n.must(err)
	upgrade()
	r, err := c.State(n.ctx(), &taskapi.StateRequest{ID: "c"})
	n.must(err)
	if r.Status.String() != "PAUSED" || r.Pid != c.pid || r.Stdout != out.path || !r.Terminal {
		t.Errorf("state %v", r)
	}
	_, err = c.Resume(n.ctx(), &taskapi.ResumeRequest{ID: "c"})
	n.must(err)
	// Its streams have been opened, and are closed again.
	n.must(c.addExecTo("failing", n.pipe("failing").read().path, "there is no such program"))
	if c.begin("failing") == nil {
		t.Error("what is not there was started")
	}
	n.must(c.addExec("waiting", "true"))
	upgrade()
	if got := c.wait("failing"); got != 255 {
		t.Errorf("status of what could not be started: %d", got)
	}
	n.must(c.delete("failing"))
	n.must(c.begin("waiting"))
	if got := c.wait("waiting"); got != 0 {
		t.Errorf("status of an exec from before: %d", got)
	}
	writer.WriteString("\x04")
	if got := c.wait(""); got != 4 {
		t.Errorf("status of the terminal's process: %d", got)
	}
	upgrade()
	c.remove()
	c.gone()
	n.wantEvents("d", "create", "start", "exit d 5", "delete")
	n.wantEvents("c", "create", "start", "paused", "resumed", "exec-added", "exec-added", "delete", "exec-started", "exit waiting 0", "exit c 4", "delete")
}

// OOM kills are told of after an upgrade, once, and those of before are not told of
// again.
func TestUpgradedOOM(t *testing.T) {
	n := newNode(t)
	keeper := n.define("keeper", n.spec("keeper", "sleep", "1000"))
	n.must(keeper.create())
	before := keeper.join("before", n.limited("before", "sh", "-c", "dd if=/dev/zero of=/dev/null bs=200M count=1; sleep 1000"))
	n.must(before.create())
	n.must(before.begin(""))
	wait.Until(n.t, "a kill is told of", func() bool { return len(n.seen("before")) == 3 })
	after := keeper.join("after", n.limited("after", greedy...))
	n.must(after.create())
	_, err := n.upgrade("keeper")
	n.must(err)
	n.must(after.begin(""))
	if got := after.wait(""); got != 137 {
		t.Errorf("status %d", got)
	}
	_, err = n.upgrade("keeper")
	n.must(err)
	for _, b := range []*box{before, after} {
		if got := b.oomKills(); got != 1 {
			t.Errorf("%d kills in the counters of %s", got, b.id)
		}
		b.kill(9)
		b.wait("")
		n.must(b.delete(""))
	}
	keeper.remove()
	keeper.gone()
	n.wantEvents("before", "create", "start", "oom", "exit before 137", "delete")
	n.wantEvents("after", "create", "start", "oom", "exit after 137", "delete")
}

// A sandbox, what waits for its end, and the containers in it.
func TestUpgradedSandbox(t *testing.T) {
	n := newNode(t)
	s, _ := n.sandbox("pod")
	started, err := s.sandbox.StartSandbox(n.ctx(), &sandboxapi.StartSandboxRequest{SandboxID: "pod"})
	n.must(err)
	ended := make(chan error, 1)
	go func() {
		_, err := s.sandbox.WaitSandbox(context.Background(), &sandboxapi.WaitSandboxRequest{SandboxID: "pod"})
		ended <- err
	}()
	b := s.join("c", n.inPod("c", started.Pid, "sleep", "1000"))
	n.must(b.create())
	n.must(b.begin(""))
	_, err = n.upgrade("c") // found by a container that is not the first
	n.must(err)
	r, err := s.sandbox.SandboxStatus(n.ctx(), &sandboxapi.SandboxStatusRequest{SandboxID: "pod"})
	n.must(err)
	if r.State != "SANDBOX_READY" || r.Pid != started.Pid || !r.CreatedAt.AsTime().Equal(started.CreatedAt.AsTime()) {
		t.Errorf("status after the upgrade %v", r)
	}
	b.kill(9)
	b.wait("")
	n.must(b.delete(""))
	_, err = s.sandbox.StopSandbox(n.ctx(), &sandboxapi.StopSandboxRequest{SandboxID: "pod"})
	n.must(err)
	n.must(<-ended)
	_, err = n.upgrade("pod")
	n.must(err)
	r, err = s.sandbox.SandboxStatus(n.ctx(), &sandboxapi.SandboxStatusRequest{SandboxID: "pod"})
	n.must(err)
	if r.State != "SANDBOX_NOTREADY" {
		t.Errorf("status after its end %v", r)
	}
	_, err = s.sandbox.ShutdownSandbox(n.ctx(), &sandboxapi.ShutdownSandboxRequest{SandboxID: "pod"})
	n.must(err)
	s.gone()
}

// A connection on which half of a request has come when the shim is upgraded, at any of its bytes,
// and one whose peer does not read its answers.
func TestUpgradedInTheMiddleOfAFrame(t *testing.T) {
	n := newNode(t)
	b := n.define("c", n.spec("c", "sleep", "1000"))
	n.must(b.create())
	request := func(stream uint32, id string) []byte {
		body := wire.Marshal(&wire.Request{Service: "containerd.task.v3.Task", Method: "State", Payload: wire.Marshal(&wire.StateRequest{ID: id})})
		frame := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
		frame = binary.BigEndian.AppendUint32(frame, stream)
		return append(append(frame, 1, 0), body...)
	}
	conn, err := net.Dial("unix", strings.TrimPrefix(b.address(), "unix://"))
	n.must(err)
	defer conn.Close()
	answer := func(want uint32) {
		t.Helper()
		n.must(conn.SetReadDeadline(time.Now().Add(time.Minute)))
		head := make([]byte, 10)
		_, err := io.ReadFull(conn, head)
		n.must(err)
		body := make([]byte, binary.BigEndian.Uint32(head))
		_, err = io.ReadFull(conn, body)
		n.must(err)
		if got := binary.BigEndian.Uint32(head[4:]); got != want {
			t.Errorf("answer to %d, want %d", got, want)
		}
		var r wire.Response
		n.must(wire.Unmarshal(body, &r))
		if r.Status != nil && r.Status.Code != 0 {
			t.Errorf("answer %d: %s", want, r.Status.Message)
		}
	}
	stream := uint32(1)
	whole := request(stream, "c")
	for _, cut := range []int{1, 9, 10, 11, len(whole) - 1, len(whole)} {
		whole = request(stream, "c")
		_, err = conn.Write(whole[:cut])
		n.must(err)
		_, err = n.upgrade("c")
		n.must(err)
		_, err = conn.Write(whole[cut:])
		n.must(err)
		answer(stream)
		stream += 2
	}
	// More answers than a socket has room for, of which none is read before the upgrade.
	deaf := uint32(0)
	for ; deaf < 3000; deaf++ {
		_, err = conn.Write(request(stream+2*deaf, "c"))
		n.must(err)
	}
	_, err = n.upgrade("c")
	n.must(err)
	seen := make(map[uint32]bool)
	for range deaf {
		n.must(conn.SetReadDeadline(time.Now().Add(time.Minute)))
		head := make([]byte, 10)
		_, err := io.ReadFull(conn, head)
		n.must(err)
		_, err = io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(head)))
		n.must(err)
		id := binary.BigEndian.Uint32(head[4:])
		if seen[id] || id < stream || head[8] != 2 {
			t.Fatalf("answer to %d, of kind %d", id, head[8])
		}
		seen[id] = true
	}
	b.remove()
	conn.Close()
	b.gone()
}
