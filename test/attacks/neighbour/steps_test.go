package neighbour

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/test/harness"
)

// A step is the moment before a call of the engine's or of an init's. All of the engine stands
// still in it.
type step struct {
	n    int    // among the steps of its command, from 0
	at   string // PROCESS:NAME:N, as test/fault names calls
	text string // the call's path, where it has one
}

func (s step) String() string { return strings.TrimSpace(fmt.Sprintf("%d %s %s", s.n, s.at, s.text)) }

// inward are calls that neither look at nor change anything outside of their process: what is done
// before one of them meets the engine in the same state as what is done before the next call that
// is not.
var inward = strings.Fields("close close_range fcntl fstat dup3 lseek prlimit64 getrlimit prctl umask mmap madvise rt_sigaction uname capset setsid")

// stepped runs a command under test/fault. Each step is handed to at, and each process that
// executes a program that is not the engine's to executed, before that program's first instruction.
func stepped(cmd *harness.Command, at func(step), executed func(pid int, exe string)) harness.Result {
	t, socket := cmd.Box.T, cmd.Box.Path("steps")
	t.Helper()
	stops, err := harness.ListenStops(socket)
	check(t, err)
	defer stops.Close()
	cmd.Wrap = append(cmd.Wrap, harness.Fault(t), "-tell", socket, "--")
	running, n := cmd.Start(), 0
	err = stops.Follow(func(s harness.Stop) {
		switch {
		case s.Call == "":
			executed(s.PID, s.Text)
		case !slices.Contains(inward, s.Name):
			at(step{n: n, at: s.Call, text: s.Text})
			n++
		}
	})
	if err != nil {
		running.Signal(os.Kill)
		t.Fatalf("%v: %s", err, running.Wait().Stderr)
	}
	return running.Wait()
}
