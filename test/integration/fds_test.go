package integration

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// A container gets its standard streams and nothing else.
func TestNoDescriptorsLeakIntoTheContainer(t *testing.T) {
	b := harness.New(t)
	v := b.Container().Look()
	for fd, target := range v.FDs {
		if fd > 2 {
			t.Errorf("descriptor %d is open: %s", fd, target)
		}
	}
	if len(v.FDs) != 3 {
		t.Errorf("open: %v", v.FDs)
	}
}

// Descriptors that the caller has open, without asking for them to be passed, stay out.
func TestCallersDescriptorsStayOut(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	c.Spec.Process.Args = []string{"/inside", "look"}
	c.Extra = extraFiles(b, "a", "b")
	v := harness.ParseView(t, c.Run().OK(t).Stdout)
	if len(v.FDs) != 3 {
		t.Errorf("open: %v", v.FDs)
	}
}

func TestPreserveFDs(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "try", "read-fd=3", "read-fd=4", "read-fd=5")
	c.Extra = extraFiles(b, "three", "four", "five")
	got := harness.ParseAttempts(t, c.Run("--preserve-fds", "2").OK(t).Stdout)
	if got["read-fd=3"].Result != "three" || got["read-fd=4"].Result != "four" {
		t.Errorf("%+v", got)
	}
	harness.Refused(t, got, "read-fd=5", "EBADF")
}

func TestPreserveFDsByCreate(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "try", "read-fd=3", "read-fd=4")
	c.Extra = extraFiles(b, "three")
	out, w := b.Pipe()
	c.Stdout = w
	c.Create("--preserve-fds", "1")
	w.Close()
	c.Extra = nil
	c.Start()
	got := harness.ParseAttempts(t, out.All())
	if got["read-fd=3"].Result != "three" {
		t.Errorf("%+v", got)
	}
	harness.Refused(t, got, "read-fd=4", "EBADF")
	c.WaitExit()
}

// More were asked for than there are.
func TestPreserveFDsThatAreNotThere(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/true")
	c.Extra = extraFiles(b, "three")
	c.Run("--preserve-fds", "5").Fails(t)
	c.Run("--preserve-fds", "-1").Fails(t)
}

// Socket activation: the descriptors come as 3 and on, and the process is told that they are meant
// for it, PID 1.
func TestListenFDs(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "echo pid=$LISTEN_PID fds=$LISTEN_FDS names=$LISTEN_FDNAMES; cat <&3; cat <&4; cat <&5")
	c.Extra = extraFiles(b, "three ", "four ", "five")
	c.Env = []string{"LISTEN_FDS=2", "LISTEN_FDNAMES=x:y"}
	cmd := c.Command("run", []string{"--preserve-fds", "1"})
	// They are for the process with this pid, which only the process itself knows before it becomes
	// the engine.
	cmd.Wrap = []string{"/bin/sh", "-c", `export LISTEN_PID=$$; exec "$0" "$@"`}
	r := cmd.Run().OK(t)
	lines := r.Lines()
	if !strings.HasPrefix(lines[0], "pid=1 fds=2") {
		t.Errorf("the environment says %q", lines[0])
	}
	if lines[1] != "three four five" {
		t.Errorf("the descriptors gave %q", lines[1])
	}
	// Those of another process, as an ancestor's variables tell of, are not there, and none that
	// has such a number is the container's.
	c.Spec.Process.Args[2] = "echo fds=$LISTEN_FDS $(cat <&3); ls /proc/self/fd"
	c.Env, c.Extra = []string{"LISTEN_FDS=2", "LISTEN_PID=1"}, extraFiles(b, "three", "four", "five")
	// ls has one open itself.
	if got := c.Run("--preserve-fds", "1").OK(t).Stdout; !strings.HasPrefix(got, "fds= three\n") || strings.Contains(got, "\n5\n") {
		t.Errorf("with the variables of another process: %q", got)
	}
	// What is added to a container is not what it listens with.
	running := b.Container("/inside", "hang").RunDetached()
	running.Extra = extraFiles(b, "three", "four")
	added := running.Command("exec", []string{"--preserve-fds", "1"}, "/bin/sh", "-c", "echo fds=$LISTEN_FDS $(cat <&3)")
	added.Env, added.Wrap = []string{"LISTEN_FDS=1"}, cmd.Wrap
	if got := added.Run().OK(t).Stdout; got != "fds= three\n" {
		t.Errorf("exec: %q", got)
	}
}

func TestPIDFDSocket(t *testing.T) {
	for _, verb := range []string{"create", "run"} {
		t.Run(verb, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/inside", "hang")
			s := b.FDSocket("pidfd.sock")
			if verb == "create" {
				c.Create("--pidfd-socket", s.Path)
			} else {
				c.RunDetached("--pidfd-socket", s.Path)
			}
			_, fd := s.ReceiveOne()
			defer unix.Close(fd)
			info, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(fd))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(strings.Fields(string(info)), strconv.Itoa(c.PID)) || !strings.Contains(string(info), "Pid:") {
				t.Errorf("what came is not a pidfd of %d:\n%s", c.PID, info)
			}
			if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
				t.Error(err)
			}
			c.WaitExit()
		})
	}
}

// A program that is not root's opens /dev/stdout again, as many log there. What is only read is not
// given away.
func TestStandardOutputBelongsToTheUser(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "read word; echo $word > /dev/stdout")
	c.Spec.Process.User.UID = 1000
	open := func(name string, flags int) *os.File {
		f, err := os.OpenFile(b.WriteFile(name, "word\n", 0o644), flags, 0)
		must(t, err)
		t.Cleanup(func() { f.Close() })
		return f
	}
	in, out := open("in", os.O_RDONLY), open("out", os.O_WRONLY|os.O_TRUNC)
	cmd := c.Command("run", nil)
	cmd.Stdin, cmd.Stdout = in, out
	cmd.Run().OK(t)
	if got := readFile(t, out.Name()); got != "word\n" {
		t.Errorf("it has written %q", got)
	}
	for f, want := range map[*os.File]uint32{in: 0, out: 1000} {
		var st unix.Stat_t
		must(t, unix.Fstat(int(f.Fd()), &st))
		if st.Uid != want {
			t.Errorf("%s belongs to %d, want %d", f.Name(), st.Uid, want)
		}
	}
}

func extraFiles(b *harness.Box, contents ...string) []*os.File {
	b.T.Helper()
	var files []*os.File
	for _, content := range contents {
		f, err := os.Open(b.WriteFile("extra-"+strings.TrimSpace(content), content, 0o644))
		if err != nil {
			b.T.Fatal(err)
		}
		b.T.Cleanup(func() { f.Close() })
		files = append(files, f)
	}
	return files
}
