package neighbour

import (
	"fmt"
	"os"
	"path"
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
	// key is that of the same step in another trial, in which other calls may have been made twice.
	key string
}

func (s step) String() string { return strings.TrimSpace(fmt.Sprintf("%d %s %s", s.n, s.at, s.text)) }

// inward are calls that neither look at nor change anything outside of their process: what is done
// before one of them meets the engine in the same state as what is done before the next call that
// is not.
var inward = strings.Fields("close close_range fcntl fstat dup3 lseek prlimit64 getrlimit prctl umask mmap madvise rt_sigaction uname capset setsid")

// stepped runs a command under test/fault. Each step from the first on, or from call to call that
// at asks for, is handed to at, and each process that executes a program that is not the engine's
// to executed, before that program's first instruction.
func stepped(cmd *harness.Command, first string, at func(step) (next string), executed func(pid int, exe string)) harness.Result {
	t, socket := cmd.Box.T, cmd.Box.Path("steps")
	t.Helper()
	stops, err := harness.ListenStops(socket)
	check(t, err)
	defer stops.Close()
	check(t, os.Chmod(socket, 0o777)) // an ordinary user's engine is traced by that user
	cmd.Wrap = append(cmd.Wrap, harness.Fault(t), "-tell", socket, "--")
	running, n, keys := cmd.Start(), 0, map[string]int{}
	err = stops.FollowTo(first, func(s harness.Stop) string {
		switch {
		case s.Call == "":
			executed(s.PID, s.Text)
		case first != harness.EachCall || !slices.Contains(inward, s.Name):
			process, _, _ := strings.Cut(s.Call, ":")
			key := process + ":" + s.Name + " " + changing.ReplaceAllString(s.Text, "N")
			keys[key]++
			n++
			return at(step{n: n - 1, at: s.Call, text: s.Text, key: fmt.Sprint(key, " ", keys[key], " ")})
		}
		return harness.EachCall
	})
	if err != nil {
		running.Signal(os.Kill)
		t.Fatalf("%v: %s", err, running.Wait().Stderr)
	}
	return running.Wait()
}

// nameless are calls that look up no name: what they are given is open, or is made by them. What is
// done to a name before one of them, and undone after it, makes no difference to it.
var nameless = strings.Fields(`read pread64 write fsopen fsconfig fsmount move_mount mount_setattr socket socketpair sendto sendmsg recvmsg ppoll poll
	pipe2 memfd_create clone3 clone vfork flock ioctl fchdir keyctl capget landlock_create_ruleset sched_setaffinity unshare setns seccomp setgroups
	setresuid setresgid sethostname wait4 waitid pidfd_open pidfd_send_signal getrandom exit_group`)

// looksUp reports whether a call may look a name up.
func (s step) looksUp(name string) bool {
	process, _, _ := strings.Cut(s.at, ":")
	if slices.Contains(nameless, s.call()) || process == "0" && (strings.HasPrefix(s.text, "/proc/") || strings.HasPrefix(s.text, "/sys/")) {
		return false // those are the host's
	}
	return strings.Contains("/"+s.text+"/", "/"+path.Base(name)+"/")
}

// tells reports whether a call may tell of names, or look up what is not known.
func (s step) tells() bool {
	return strings.HasSuffix(s.text, "mountinfo") || strings.HasPrefix(s.call(), "readlink") || s.call() == "getdents64" ||
		s.text == "" && !slices.Contains(nameless, s.call())
}

func (s step) call() string {
	parts := strings.Split(s.at, ":")
	return parts[min(1, len(parts)-1)]
}
