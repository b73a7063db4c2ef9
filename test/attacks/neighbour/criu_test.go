package neighbour

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// images stands for the directory that criu writes to and reads from, in a command's flags.
const images = "IMAGES"

// criuShapes are the shapes that are written down. For what criu takes of a container the others
// make no difference, but that it can't read the limits of an undumpable process on every machine.
var criuShapes = []string{"usual"}

// wholeProc is held for reading by those who mount a /proc in a user namespace, while nothing is
// mounted on ours (see harness.LimitCriu).
var wholeProc sync.RWMutex

func (c command) byCriu() bool { return c.verb == "checkpoint" || c.verb == "restore" }

// isCriu reports whether a process is the host's criu, or the script that this is behind: the
// engine gives it a mount namespace of its own.
func (t *trial) isCriu(pid int) bool {
	words := strings.Split(string(read(fmt.Sprintf("/proc/%d/cmdline", pid))), "\x00")
	return t.command.byCriu() && slices.Contains(words, t.s.criu) && namespacesOf(pid)["pid"] == namespacesOf(os.Getpid())["pid"]
}

func placeImages(flags []string, dir string) []string {
	flags = slices.Clone(flags)
	if i := slices.Index(flags, images); i >= 0 {
		flags[i] = dir
	}
	return flags
}

// write has criu write a container down that is gone then.
func (t *trial) write() {
	test := t.s.b.T
	test.Helper()
	first := newAgent(test)
	defer first.close()
	t.prepare(first)
	t.engine(first, "checkpoint", []string{"--image-path", images}, nil).Run().OK(test)
	t.s.b.WaitGone(t.payload)
	_, _ = unix.Wait4(t.payload, nil, 0, nil)
	t.payload, t.s.target.PID, t.born = 0, 0, nil
}

// resumed is ready for an agent that goes on where another one was written down: it has said that
// it is there already.
func (a *agent) resumed() {
	a.stdin.Close()
	a.stdout.Close()
}
