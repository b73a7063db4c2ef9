package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/test/harness"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// counter is a container whose process counts the lines that it is sent, and
// answers each with the number: what it has counted is in its memory alone.
func counter(b *harness.Box) *harness.Container {
	c := b.Container("/bin/sh", "-c", "n=0; while read word; do n=$((n+1)); echo $word $n; done; exit 7")
	c.Spec.Root.Readonly = true
	return c
}

// withCriu is a box whose engine has the criu of the tests.
func withCriu(t *testing.T) *harness.Box {
	t.Helper()
	criu := harness.NeedCriu(t)
	b := harness.New(t)
	b.Globals = append(b.Globals, "--criu", criu)
	return b
}

// counting starts a counter that has counted to one.
func counting(t *testing.T, c *harness.Container) *pipes {
	t.Helper()
	p := newPipes(t)
	p.give(c)
	if r := c.TryRunDetached(); r.Code != 0 {
		p.to.Close()
		buf := make([]byte, 1000)
		n, _ := p.out.Read(buf)
		t.Fatalf("the counter does not run: %s", buf[:n])
	}
	p.expect("one", "one 1")
	return p
}

type pipes struct {
	t        *testing.T
	in, out  *os.File // ours
	from, to *os.File // the container's
}

func newPipes(t *testing.T) *pipes {
	t.Helper()
	p := &pipes{t: t}
	var err error
	if p.from, p.in, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	if p.out, p.to, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, f := range []*os.File{p.in, p.out, p.from, p.to} {
			f.Close()
		}
	})
	return p
}

// give makes the pipes the container's streams.
func (p *pipes) give(c *harness.Container) {
	c.Stdin, c.Stdout, c.Stderr = p.from, p.to, p.to
}

func (p *pipes) expect(say, want string) {
	p.t.Helper()
	if _, err := p.in.WriteString(say + "\n"); err != nil {
		p.t.Fatal(err)
	}
	buf := make([]byte, 100)
	n, err := p.out.Read(buf)
	if err != nil || strings.TrimSpace(string(buf[:n])) != want {
		p.t.Fatalf("%q, %v; want %q", buf[:n], err, want)
	}
}

func restore(c *harness.Container, flags ...string) harness.Result {
	pidFile := c.Box.Path(c.ID + ".restored")
	cmd := c.Command("restore", append([]string{"--detach", "--pid-file", pidFile}, flags...))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	r := cmd.Run()
	if r.Code == 0 {
		c.PID = c.State().Pid
	}
	return r
}

func TestCheckpointAndRestore(t *testing.T) {
	b := withCriu(t)
	c := counter(b)
	hooked := b.Path("hooked")
	b.WriteFile("source", "from the host\n", 0o644)
	c.WriteFile("bound", "", 0o644)
	c.Spec.Mounts = append(c.Spec.Mounts,
		specs.Mount{Destination: "/bound", Type: "bind", Source: b.Path("source"), Options: []string{"bind", "ro"}},
		specs.Mount{Destination: "/sys/fs/cgroup", Type: "cgroup", Source: "cgroup", Options: []string{"ro"}})
	c.Spec.Hooks = &specs.Hooks{CreateRuntime: []specs.Hook{{Path: "/bin/sh", Args: []string{"sh", "-c", "echo . >> " + hooked}}}}
	first := counting(t, c)

	image, work := b.Path("image"), b.Path("work")
	c.Command("checkpoint", []string{"--image-path", image, "--work-path", work, "--leave-running"}).Run().OK(t)
	first.expect("two", "two 2")
	os.RemoveAll(image)
	c.Command("checkpoint", []string{"--image-path", image, "--work-path", work}).Run().OK(t)
	if status := c.WaitExit(); status.Signal() != unix.SIGKILL {
		t.Errorf("the process ended with %v", status)
	}
	c.Command("state", nil).Run().Fails(t, "container does not exist")
	for _, name := range []string{"dump.log"} {
		if _, err := os.Stat(filepath.Join(work, name)); err != nil {
			t.Error(err)
		}
	}

	second := newPipes(t)
	second.give(c)
	restore(c, "--image-path", image, "--work-path", work).OK(t)
	second.expect("three", "three 3")
	if got := c.State(); got.Status != "running" || got.Pid == 0 {
		t.Errorf("state after restore: %+v", got)
	}
	c.Exec(nil, "/bin/cat", "/bound").OK(t)
	if out := c.Exec(nil, "/bin/cat", "/bound").Stdout; out != "from the host\n" {
		t.Errorf("the bind mount has %q", out)
	}
	v := harness.ParseView(t, c.Exec(nil, "/inside", "look").OK(t).Stdout)
	harness.HasOptions(t, harness.MountAt(t, v, "/"), "ro")
	harness.HasOptions(t, harness.MountAt(t, v, "/bound"), "ro")
	if v.Hostname != "berth-test" {
		t.Errorf("host name %q after restore", v.Hostname)
	}
	for line := range strings.Lines(readFile(t, procPath(c.PID, "cgroup"))) {
		if !strings.HasSuffix(strings.TrimSpace(line), "/"+c.ID) {
			t.Errorf("the restored process is in %s", line)
		}
	}
	if got := readFile(t, hooked); got != ".\n.\n" {
		t.Errorf("the createRuntime hook left %q, want it to have run twice", got)
	}
	second.in.Close()
	if status := c.WaitExit(); status.ExitStatus() != 7 {
		t.Errorf("the restored process ended with %v, want status 7", status)
	}
	c.Delete()
}

// What its clients do: containerd pauses a task before it has it written down. It is as
// paused as it was when it goes on, and comes back running.
func TestCheckpointOfAPausedContainer(t *testing.T) {
	b := withCriu(t)
	c := counter(b)
	p := counting(t, c)
	c.Command("pause", nil).Run().OK(t)
	c.Command("checkpoint", []string{"--image-path", b.Path("kept"), "--leave-running"}).Run().OK(t)
	if got := c.State().Status; got != "paused" {
		t.Errorf("the container is %s after a checkpoint that leaves it", got)
	}
	if _, err := p.in.WriteString("two\n"); err != nil {
		t.Fatal(err)
	}
	if says(p.out, 200*time.Millisecond) {
		t.Error("a paused container has said something")
	}
	c.Command("resume", nil).Run().OK(t)
	if !says(p.out, harness.Deadline) {
		t.Fatal("the container does not go on")
	}
	p.out.Read(make([]byte, 100))
	if got := c.State().Status; got != "running" {
		t.Errorf("the container is %s after resume", got)
	}
	c.Command("pause", nil).Run().OK(t)
	c.Command("checkpoint", []string{"--image-path", b.Path("image")}).Run().OK(t)
	c.WaitExit()
	restore(c, "--image-path", b.Path("image")).OK(t)
	if got := c.State().Status; got != "running" {
		t.Errorf("the container is %s after restore", got)
	}
	p.expect("three", "three 3")
	c.Delete("--force")
}

// A checkpoint that fails leaves a container as it was, paused or not.
func TestFailedCheckpointLeavesTheContainer(t *testing.T) {
	b := withCriu(t)
	for _, status := range []string{"running", "paused"} {
		c := counter(b)
		p := counting(t, c)
		if status == "paused" {
			c.Command("pause", nil).Run().OK(t)
		}
		c.Command("checkpoint", []string{"--image-path", b.Path("image"), "--page-server", "127.0.0.1:1"}).Run().Fails(t)
		if got := c.State().Status; string(got) != status {
			t.Errorf("the container is %s, and was %s", got, status)
		}
		if status == "paused" {
			c.Command("resume", nil).Run().OK(t)
		}
		p.expect("two", "two 2")
		c.Delete("--force")
	}
}

// says waits for something to read.
func says(f *os.File, limit time.Duration) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, int(limit.Milliseconds()))
		if err != unix.EINTR {
			return n > 0
		}
	}
}

func TestPreDump(t *testing.T) {
	b := withCriu(t)
	c := counter(b)
	p := counting(t, c)
	r := c.Command("checkpoint", []string{"--image-path", b.Path("pre"), "--pre-dump"}).Run()
	if strings.Contains(r.Stderr, "does not track changes of memory") {
		harness.Skip(t, "needs a kernel that tracks changes of memory (CONFIG_MEM_SOFT_DIRTY)")
	}
	r.OK(t)
	p.expect("two", "two 2")
	c.Command("checkpoint", []string{"--image-path", b.Path("image"), "--parent-path", "../pre"}).Run().OK(t)
	c.WaitExit()
	restore(c, "--image-path", b.Path("image")).OK(t)
	p.expect("three", "three 3")
	c.Delete("--force")
}

// What is refused needs no criu that works.
func TestCheckpointRefusals(t *testing.T) {
	b := harness.New(t)
	b.Berth("checkpoint", "--help").OK(t)
	b.Berth("restore", "--help").OK(t)
	c := b.Container("/inside", "hang")
	c.Create()
	image := b.Path("image")
	c.Command("checkpoint", []string{"--image-path", image}).Run().Fails(t, "it is created")
	c.Start()
	for want, flags := range map[string][]string{
		"--manage-cgroups-mode": {"--manage-cgroups-mode", "sideways"},
		"--empty-ns":            {"--empty-ns", "mount"},
		"--page-server":         {"--page-server", "nowhere"},
		"--parent-path":         {"--parent-path", "../missing"},
	} {
		c.Command("checkpoint", append([]string{"--image-path", image}, flags...)).Run().Fails(t, want)
	}
	cmd := c.Command("checkpoint", []string{"--image-path", image})
	cmd.Env = []string{"PATH=" + b.Dir}
	cmd.Run().Fails(t, "criu is not installed")
	missing := c.Command("restore", []string{"--image-path", b.Path("missing")})
	missing.Run().Fails(t, "--image-path", "no such file or directory")
	const podman = "podman container restore --import takes an export of Podman's"
	for dir, want := range map[string][]string{
		filepath.Dir(b.WriteFile("none/else.img", "", 0o644)):                              {"no checkpoint in", "inventory.img"},
		b.WriteFile("export.tar.gz", "", 0o644):                                            {"not a directory", podman},
		filepath.Dir(filepath.Dir(b.WriteFile("all/checkpoint/inventory.img", "", 0o644))): {"but in", podman},
	} {
		c.Command("restore", []string{"--image-path", dir}).Run().Fails(t, append(want, "--image-path")...)
	}
	if got := c.State().Status; got != "running" {
		t.Errorf("the container is %s after all that", got)
	}
	c.Delete("--force")
}
