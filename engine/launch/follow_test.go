package launch

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// What has forked stands still before its exit, as it does where the container freezes the cgroup
// that it is in: nothing waits for it to go on.
func TestFollowIsNotHeldUp(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	s := Spawn{Cgroup: -1, Stdio: [3]uintptr{null.Fd(), null.Fd(), null.Fd()}, Forks: 1}
	s.Program = func(n *Numbers) (*program.Program, error) {
		b := program.NewBuilder()
		b.Because("", "fork")
		child, report := b.NewLabel(), program.Int(int64(n.Report))
		forked := program.Request{Kind: program.AskForked}
		b.May(program.Expectation{Request: forked})
		record := b.Record(forked)
		b.Call(unix.SYS_CLONE, program.Imm(unix.CLONE_PARENT|uint64(unix.SIGCHLD)), program.Int(0), program.Int(0), program.Int(0), program.Int(0)).
			ZeroFails().Expect(child, unix.EPIPE).IntoAddr(record.Plus(program.AskValueAt))
		b.Call(unix.SYS_SENDTO, report, record.Arg(), program.Int(16), program.Int(0), program.Int(0), program.Int(0))
		b.Call(unix.SYS_PPOLL, program.Int(0), program.Int(0), program.Int(0), program.Int(0), program.Int(0)) // for ever
		b.Place(child)
		b.Call(unix.SYS_READ, report, b.Zeroed(8).Arg(), program.Int(1))
		b.Call(unix.SYS_EXIT_GROUP, program.Int(42))
		return b.Build(n.Report)
	}
	child, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	first := child.Pid
	held := time.AfterFunc(20*time.Second, func() { _ = unix.Kill(first, unix.SIGKILL) })
	refuse := func(program.Request, int) error { return errors.New("it asks for nothing") }
	if err := child.Serve(0, refuse); !errors.Is(err, ErrExecuted) {
		t.Fatal(err)
	}
	if !held.Stop() {
		t.Error("the runtime waited for what had forked")
	}
	if status, err := child.Wait(); err != nil || status.ExitStatus() != 42 {
		t.Errorf("it ended with %v, %v", status, err)
	}
	if err := unix.Kill(first, 0); err != unix.ESRCH {
		t.Errorf("what had forked is still there: %v", err)
	}
	child.Close()
}
