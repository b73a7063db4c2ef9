package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	events "github.com/containerd/containerd/api/services/events/v1"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

const namespace = "berth-test"

// buildShim builds the shim once for all tests.
var buildShim = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "berth-shim-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "containerd-shim-berth-v2")
	cmd := exec.Command("go", "build", "-o", path, "github.com/berth-runtime/berth/cmd/containerd-shim-berth-v2")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the shim: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := buildShim(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// daemon is a containerd with folders, sockets and cgroups of its own.
type daemon struct {
	t       testing.TB
	dir     string
	shim    string
	env     []string
	process *exec.Cmd
	conn    *grpc.ClientConn
	cgroup  string
	root    string // root file system of all containers
}

// lookFor gives the path of a program, or skips the test.
func lookFor(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// newDaemon starts a containerd, and at the end of the test stops it and looks
// for what has been left behind.
func newDaemon(t testing.TB, env ...string) *daemon {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers through containerd need root")
	}
	lookFor(t, "containerd")
	shim, err := buildShim()
	if err != nil {
		t.Fatal(err)
	}
	// Socket paths are short: t.TempDir() has the test's name in it.
	dir, err := os.MkdirTemp("", "bt")
	if err != nil {
		t.Fatal(err)
	}
	d := &daemon{t: t, dir: dir, shim: shim, cgroup: "/" + filepath.Base(dir), env: env}
	d.makeRoot()
	d.start()
	t.Cleanup(func() {
		d.stop()
		d.checkLeaks()
		os.RemoveAll(dir)
	})
	return d
}

// makeRoot makes a root file system of a static busybox.
func (d *daemon) makeRoot() {
	busybox := lookFor(d.t, "busybox")
	d.root = filepath.Join(d.dir, "busybox")
	for _, sub := range []string{"bin", "etc", "proc", "sys", "dev", "tmp"} {
		if err := os.MkdirAll(filepath.Join(d.root, sub), 0o755); err != nil {
			d.t.Fatal(err)
		}
	}
	program, err := os.ReadFile(busybox)
	if err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.root, "bin/busybox"), program, 0o755); err != nil {
		d.t.Fatal(err)
	}
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		d.t.Skipf("busybox does not list its applets: %v", err)
	}
	for _, applet := range strings.Fields(string(list)) {
		if applet != "busybox" {
			if err := os.Symlink("busybox", filepath.Join(d.root, "bin", applet)); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

func (d *daemon) start() {
	d.t.Helper()
	config := fmt.Sprintf(`version = 2
root = "%[1]s/root"
state = "%[1]s/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.devmapper"]
[grpc]
  address = "%[1]s/c.sock"
[ttrpc]
  address = "%[1]s/c.sock.ttrpc"
[debug]
  level = "debug"
`, d.dir)
	path := filepath.Join(d.dir, "config.toml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		d.t.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.t.Fatal(err)
	}
	defer log.Close()
	d.process = exec.Command("containerd", "-c", path)
	d.process.Stdout, d.process.Stderr = log, log
	d.process.Env = append(os.Environ(), "BERTH_SHIM_SOCKET_DIR="+filepath.Join(d.dir, "s"))
	d.process.Env = append(d.process.Env, d.env...)
	d.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.process.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.conn, err = grpc.NewClient("unix://"+d.dir+"/c.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		d.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.ctx(), 30*time.Second)
	defer cancel()
	if _, err := d.containers().List(ctx, &containers.ListContainersRequest{}, grpc.WaitForReady(true)); err != nil {
		d.t.Fatalf("containerd does not answer: %v\n%s", err, d.log())
	}
}

func (d *daemon) stop() {
	d.conn.Close()
	d.process.Process.Signal(syscall.SIGTERM)
	d.process.Wait()
}

func (d *daemon) log() string {
	b, _ := os.ReadFile(filepath.Join(d.dir, "log"))
	return string(b)
}

func (d *daemon) ctx() context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "containerd-namespace", namespace)
}

func (d *daemon) tasks() tasks.TasksClient { return tasks.NewTasksClient(d.conn) }
func (d *daemon) containers() containers.ContainersClient {
	return containers.NewContainersClient(d.conn)
}
func (d *daemon) events() events.EventsClient { return events.NewEventsClient(d.conn) }

// shims are the pids of this test's shims that serve, which have -socket.
func (d *daemon) shims() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		cmdline, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err == nil && bytes.HasPrefix(cmdline, []byte(d.shim)) && bytes.Contains(cmdline, []byte("\x00-socket\x00"+d.dir+"/")) {
			var pid int
			fmt.Sscan(e.Name(), &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// eventually waits for something that nothing can be asked to wait for.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not within 20 s: %s", what)
}

// checkLeaks looks for what containers may leave behind.
func (d *daemon) checkLeaks() {
	end := time.Now().Add(10 * time.Second)
	for len(d.shims()) > 0 && time.Now().Before(end) {
		time.Sleep(5 * time.Millisecond) // they leave after containerd has its answer
	}
	for _, pid := range d.shims() {
		d.t.Errorf("left: shim with pid %d", pid)
		syscall.Kill(pid, syscall.SIGKILL)
	}
	sockets, _ := filepath.Glob(filepath.Join(d.dir, "s", "*"))
	for _, s := range sockets {
		d.t.Errorf("left: socket %s", s)
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(mounts)) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], d.dir) {
			d.t.Errorf("left: mount on %s", f[4])
			syscall.Unmount(f[4], syscall.MNT_DETACH)
		}
	}
	groups, _ := filepath.Glob("/sys/fs/cgroup" + d.cgroup)
	more, _ := filepath.Glob("/sys/fs/cgroup/*" + d.cgroup)
	for _, group := range append(groups, more...) {
		inside, _ := filepath.Glob(group + "/*/cgroup.procs")
		for _, procs := range inside {
			d.t.Errorf("left: cgroup %s", filepath.Dir(procs))
			syscall.Rmdir(filepath.Dir(procs))
		}
		syscall.Rmdir(group)
	}
	states, _ := filepath.Glob(filepath.Join(d.dir, "engine", "*", "*"))
	for _, s := range states {
		d.t.Errorf("left: state of the engine %s", s)
	}
	if d.t.Failed() {
		d.t.Logf("containerd's log:\n%s", tail(d.log(), 12))
	}
}

func tail(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
