package launch

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// A process of the same user stops a container's first one while it is made: it does so by itself
// here. Who makes it waits no longer than for a frozen one.
func TestStoppedWhileMade(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	s := Spawn{Cgroup: -1, Stdio: [3]uintptr{null.Fd(), null.Fd(), null.Fd()}}
	s.Program = func(n *Numbers) (*program.Program, error) {
		b := program.NewBuilder()
		b.Because("", "stop")
		own := b.Cell()
		b.Call(unix.SYS_GETPID).Into(own)
		b.Call(unix.SYS_KILL, own.Value(), program.Int(int64(unix.SIGSTOP)))
		b.Call(unix.SYS_EXIT_GROUP, program.Int(42))
		return b.Build(n.Report)
	}
	child, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer child.Kill()
	child.While(func() bool { return false })
	var stuck *StuckError
	if err := child.Serve(program.AskReady, nil); !errors.As(err, &stuck) || !strings.Contains(err.Error(), "SIGSTOP") {
		t.Errorf("it is served to %v", err)
	}
}
