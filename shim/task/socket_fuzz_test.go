package task

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/rpc/ttrpc"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// FuzzSocket: whatever comes over the shim's socket, in whatever order, the container that was
// there before is there after it, and the next client is answered. Requests are what they are but
// for the paths and programs of the host that a trusted client names in them.
func FuzzSocket(f *testing.F) {
	seed := func(requests ...[]byte) {
		var all []byte
		for _, r := range requests {
			all = append(all, r...)
		}
		f.Add(all)
	}
	of := func(stream uint32, method string, m wire.Message) []byte {
		return frameOf(stream, "containerd.task.v3.Task", method, m)
	}
	seed(of(1, "Start", &wire.StartRequest{ID: "c"}), of(3, "State", &wire.StateRequest{ID: "c"}), of(5, "Delete", &wire.DeleteRequest{ID: "c"}))
	seed(of(1, "Exec", &wire.ExecProcessRequest{ID: "c", ExecID: "e", Spec: &wire.Any{TypeURL: "x", Value: []byte("{}")}}),
		of(3, "Start", &wire.StartRequest{ID: "c", ExecID: "e"}), of(5, "Wait", &wire.WaitRequest{ID: "c", ExecID: "e"}))
	seed(of(1, "Kill", &wire.KillRequest{ID: "c", Signal: 0xffffffff, All: true}), of(3, "Kill", &wire.KillRequest{ID: "c", ExecID: "x", Signal: 9}))
	seed(of(1, "Create", &wire.CreateTaskRequest{ID: "c"}), of(3, "Create", &wire.CreateTaskRequest{ID: "../c"}), of(5, "Create", &wire.CreateTaskRequest{ID: "d"}))
	seed(of(1, "ResizePty", &wire.ResizePtyRequest{ID: "c", Width: 1 << 31}), of(3, "CloseIO", &wire.CloseIORequest{ID: "c", Stdin: true}))
	seed(of(1, "Update", &wire.UpdateTaskRequest{ID: "c"}), of(3, "Update", &wire.UpdateTaskRequest{ID: "c", Resources: &wire.Any{Value: []byte(`{"pids":{"limit":-2}}`)}}))
	seed(of(1, "Pids", &wire.PidsRequest{ID: "c"}), of(3, "Stats", &wire.StatsRequest{ID: "c"}), of(5, "Connect", &wire.ConnectRequest{}))
	seed(of(1, "Pause", &wire.PauseRequest{ID: "c"}), of(3, "Resume", &wire.ResumeRequest{ID: "c"}), of(5, "Checkpoint", &wire.CheckpointTaskRequest{ID: "c"}))
	seed(frameOf(1, OwnService, ExpectMethod, &wire.StateRequest{ID: "d"}), frameOf(3, OwnService, ForgetMethod, &wire.StateRequest{ID: "d"}),
		of(5, "Shutdown", &wire.ShutdownRequest{}))
	f.Fuzz(func(t *testing.T, said []byte) {
		w := newWorld(t)
		w.Log = func(string) {}
		w.engine.script = "exec sleep 1000"
		w.must(w.make("c"))
		c, err := w.find("c")
		w.must(err)
		pid := c.init.pid
		defer func() {
			unix.Kill(pid, unix.SIGKILL)
			for settled := false; !settled; time.Sleep(time.Millisecond) { // its end is noted in the bundle
				c.mu.Lock()
				settled = c.init.settled
				c.mu.Unlock()
			}
		}()
		// What would be executed, killed or left on this machine.
		w.engine.fail["create"], w.engine.fail["exec"] = errors.New("not in a test"), errors.New("not in a test")

		path := filepath.Join(t.TempDir(), "s")
		listener, err := ttrpc.Listen(path)
		w.must(err)
		server := ttrpc.NewServer(func(string) {})
		w.Register(server)
		server.Register("containerd.task.v2.Task", map[string]ttrpc.Handler{})
		server.Register("containerd.task.v3.Task", w.harmless())
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()

		conn := dial(t, path)
		_, _ = conn.Write(said)
		_ = conn.CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // it may have asked to wait for the end
		_, _ = io.Copy(io.Discard, conn)
		conn.Close()

		next := dial(t, path)
		_, err = next.Write(frameOf(1, "containerd.task.v3.Task", "Connect", &wire.ConnectRequest{ID: "c"}))
		w.must(err)
		w.must(next.SetReadDeadline(time.Now().Add(10 * time.Second)))
		if _, err := io.ReadFull(next, make([]byte, 10)); err != nil {
			t.Errorf("the next client is not answered: %v", err)
		}
		next.Close()
		if now, err := w.find("c"); err == nil && now.init.pid != pid {
			t.Errorf("the container's process is %d, and was %d", now.init.pid, pid)
		}
		server.Close()
		w.must(<-served)
	})
}

// harmless are the methods of the task service, with requests that name nothing of the host.
func (w *world) harmless() map[string]ttrpc.Handler {
	return map[string]ttrpc.Handler{
		"State": Method(w.state), "Start": Method(w.start), "Delete": Method(w.delete), "Pids": Method(w.pids), "Pause": Method(w.pause),
		"Resume": Method(w.resume), "Checkpoint": Method(w.checkpoint), "Kill": Method(w.kill), "ResizePty": Method(w.resizePty),
		"CloseIO": Method(w.closeIO), "Update": Method(w.update), "Wait": Method(w.wait), "Stats": Method(w.stats), "Connect": Method(w.connect),
		"Shutdown": Method(w.shutdown),
		"Create": Method(func(ctx context.Context, r *wire.CreateTaskRequest) (wire.Message, error) {
			r.Bundle, r.Rootfs, r.Stdin, r.Stdout, r.Stderr, r.Checkpoint, r.ParentCheckpoint, r.Options = w.bundle, nil, "", "", "", "", "", nil
			return w.create(ctx, r)
		}),
		"Exec": Method(func(ctx context.Context, r *wire.ExecProcessRequest) (wire.Message, error) {
			r.Stdin, r.Stdout, r.Stderr = "", "", ""
			return w.exec(ctx, r)
		}),
	}
}

func frameOf(stream uint32, service, method string, m wire.Message) []byte {
	body := wire.Marshal(&wire.Request{Service: service, Method: method, Payload: wire.Marshal(m), TimeoutNano: int64(time.Second)})
	b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(append(b, 1, 1), body...) // a request, of which nothing more will come
}

func dial(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}
