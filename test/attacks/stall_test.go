package attacks

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/proc/procs"
	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// soon is far below what the attacks here cost where nothing is done about them (45 s, or for
// ever), and far above what a command takes on a busy machine.
const soon = 20 * time.Second

// inTime fails the test if a call takes longer than that.
func inTime(t *testing.T, what string, call func() harness.Result) harness.Result {
	t.Helper()
	began := time.Now()
	r := call()
	if took := time.Since(began); took > soon {
		t.Errorf("%s took %v", what, took)
	}
	return r
}

// staller runs a container whose process holds up others, and waits until it does.
func staller(b *harness.Box, c *harness.Container, words ...string) {
	b.T.Helper()
	c.Spec.Process.Args = append(append([]string{"/inside"}, words...), "/held")
	c.WriteFile("held", "", 0o666)
	var flags []string
	if len(c.Extra) > 0 {
		flags = []string{"--preserve-fds", "1"}
	}
	c.RunDetached(flags...)
	wait.Until(b.T, "the container's process gets to hold up others", func() bool {
		data, _ := os.ReadFile(c.Path("held"))
		return len(data) > 0
	})
}

// A lease on a file of the image holds up every open of it for 45 s.
func TestLeaseHoldsUpNobody(t *testing.T) {
	b := harness.New(t)
	c := b.Container()
	staller(b, c, "lease", "/etc/passwd")
	inTime(t, "exec", func() harness.Result { return c.Exec(nil, "/bin/true") }).OK(t)
	inTime(t, "exec --user", func() harness.Result { return c.Exec([]string{"--user", "frob"}, "/bin/true") }).FailsWith(t, 255, "/etc/passwd", "lease")
	c.Delete("--force")
	c.WaitExit()

	// Another container with the same root is begun meanwhile.
	c = b.Container()
	staller(b, c, "lease", "/etc/passwd")
	other := b.Container("/bin/true")
	other.Spec.Root.Path = c.Rootfs()
	inTime(t, "run", func() harness.Result { return other.Run() }).OK(t)
	c.Delete("--force")
	c.WaitExit()
	harness.Report(t, "attacks", 3)
}

// A file system whose server is in the container, and silent.
func TestSilentFileSystemHoldsUpNobody(t *testing.T) {
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		harness.Skip(t, "needs FUSE: %v", err)
	}
	defer fuse.Close()
	b := harness.New(t)
	c := b.Container()
	all := append([]string{"CAP_SYS_ADMIN"}, harness.DefaultCaps...)
	c.Spec.Process.Capabilities = &specs.LinuxCapabilities{Bounding: all, Effective: all, Permitted: all}
	c.Extra = []*os.File{fuse}
	staller(b, c, "mute", "/etc")
	c.Extra = nil
	inTime(t, "exec", func() harness.Result { return c.Exec(nil, "/bin/true") }).OK(t)
	inTime(t, "exec --user", func() harness.Result { return c.Exec([]string{"--user", "frob"}, "/bin/true") }).FailsWith(t, 255, "/etc/passwd", "takes longer than")
	fuse.Close()
	c.Delete("--force")
	c.WaitExit()
	harness.Report(t, "attacks", 2)
}

// reapOrphans reaps the children of this process that have ended, but for one and those that Go has
// started.
func reapOrphans(but int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		s, err := procs.ReadStat(pid)
		if err != nil || s.State != 'Z' || s.Parent != os.Getpid() || pid == but {
			continue
		}
		// Until its execve what exec adds is called by the number of its file.
		if _, err := strconv.Atoi(s.Name); err == nil {
			unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// What exec adds is stopped by another process before it is the program, and never let go. Whoever
// waits for it is told so by a signal.
func TestStoppedExecEndsWhenTold(t *testing.T) {
	b := harness.New(t)
	c := newTracer(b)
	c.Spec.Process.Args = append(c.Spec.Process.Args, "hold")
	c.RunDetached()
	c.ready()
	held := false
	for range 20 { // till one was caught early enough
		cmd := c.Command("exec", nil, "/bin/sleep", "0.01")
		r := inTime(t, "exec that was told to end", func() harness.Result {
			running := cmd.Start()
			timer := time.AfterFunc(2*time.Second, func() { unix.Kill(running.PID, unix.SIGTERM) })
			defer timer.Stop()
			return running.Wait()
		})
		if r.Code != 0 {
			held = true
			r.FailsWith(t, 255, "told to end", "stopped, traced or frozen")
			break
		}
	}
	if !held {
		t.Error("no process was held")
	}
	// What the exec has left comes to this process, as it would to process 1, and the pid namespace
	// waits for its reaping.
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
				reapOrphans(c.PID)
			}
		}
	}()
	c.Delete("--force")
	close(done)
	c.WaitExit()
	if data, _ := os.ReadFile(c.seen + "/list"); !strings.Contains(string(data), "berth-init") {
		t.Error("nothing was seized before its execve")
	}
	harness.Report(t, "attacks", 1)
}
