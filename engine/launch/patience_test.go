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

// A signal to end has come while one message was waited for, and holds for the next one too.
func TestToldOnceForAllMessages(t *testing.T) {
	var news, signals [2]int
	for _, pipe := range []*[2]int{&news, &signals} {
		if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(pipe[0])
		defer unix.Close(pipe[1])
	}
	send := func(pipe [2]int) {
		if _, err := unix.Write(pipe[1], []byte{1}); err != nil {
			t.Error(err)
		}
	}
	take := func(pipe [2]int) {
		if _, err := unix.Read(pipe[0], make([]byte, 1)); err != nil {
			t.Error(err)
		}
	}
	p := patience{bound: 20 * patienceOnceTold, signals: signals[0], interrupted: func() bool {
		take(signals)
		send(news)
		return true
	}}
	fds := func() []unix.PollFd {
		return []unix.PollFd{{Fd: int32(news[0]), Events: unix.POLLIN}, {Fd: -1}, {Fd: -1}}
	}
	send(signals)
	if heard, err := p.poll(fds()); !heard || err != nil {
		t.Fatalf("the message was not heard: %v", err)
	}
	take(news)
	var impatient *Impatient
	if _, err := p.poll(fds()); !errors.As(err, &impatient) || !impatient.Told {
		t.Errorf("the next one is waited for until %v", err)
	}
}
