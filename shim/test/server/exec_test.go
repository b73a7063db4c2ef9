package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/anypb"
)

// executions counts how often some programs are executed on this machine.
func executions(t *testing.T, programs ...string) (count func() int) {
	t.Helper()
	fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_CLOEXEC|unix.FAN_NONBLOCK, unix.O_RDONLY|unix.O_CLOEXEC)
	if err != nil {
		t.Skipf("executions cannot be watched here: %v", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	for _, program := range programs {
		if err := unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN_EXEC, unix.AT_FDCWD, program); err != nil { // Linux 5.0
			t.Skipf("executions of %s cannot be watched here: %v", program, err)
		}
	}
	const eventSize, descriptorAt = 24, 16 // struct fanotify_event_metadata of fanotify(7)
	return func() (n int) {
		buf := make([]byte, 100*eventSize)
		for {
			size, err := unix.Read(fd, buf)
			if err != nil || size == 0 {
				return n
			}
			for ; size >= eventSize; size -= eventSize {
				unix.Close(int(buf[descriptorAt]) | int(buf[descriptorAt+1])<<8)
				buf = buf[eventSize:]
				n++
			}
			buf = make([]byte, 100*eventSize)
		}
	}
}

// The engine is called as a library: for no call does the shim execute itself, or
// another runtime.
func TestNothingIsExecuted(t *testing.T) {
	n := newNode(t)
	programs := []string{n.binary}
	// The shim finds copies of the runtimes, which nothing else on this machine executes.
	dir := t.TempDir()
	n.env = append(n.env, "PATH="+dir)
	for _, name := range []string{"runc", "crun", "berth"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		program, err := os.ReadFile(path)
		n.must(err)
		own := filepath.Join(dir, name)
		n.must(os.WriteFile(own, program, 0o755))
		programs = append(programs, own)
	}
	count := executions(t, programs...)
	b := n.define("c", n.spec("c", "sleep", "1000"))
	if count() == 0 {
		t.Fatal("the start of the shim has not been seen")
	}
	ctx := n.ctx()
	n.must(b.create())
	n.must(b.begin(""))
	n.must(b.addExec("e", "true"))
	n.must(b.begin("e"))
	b.wait("e")
	n.must(b.delete("e"))
	_, err := b.Pause(ctx, &taskapi.PauseRequest{ID: "c"})
	n.must(err)
	_, err = b.Resume(ctx, &taskapi.ResumeRequest{ID: "c"})
	n.must(err)
	_, err = b.Update(ctx, &taskapi.UpdateTaskRequest{ID: "c", Resources: &anypb.Any{Value: []byte(`{"pids":{"limit":50}}`)}})
	n.must(err)
	_, err = b.Pids(ctx, &taskapi.PidsRequest{ID: "c"})
	n.must(err)
	_, err = b.Stats(ctx, &taskapi.StatsRequest{ID: "c"})
	n.must(err)
	n.must(b.kill(9))
	b.wait("")
	n.must(b.delete(""))
	b.shutdown()
	b.gone()
	if got := count(); got != 0 {
		t.Errorf("%d executions of %q", got, programs)
	}
}
