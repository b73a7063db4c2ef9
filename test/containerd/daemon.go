package containerd

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// Namespace is containerd's namespace that tests are in.
const Namespace = "berth-test"

// Daemon is a containerd with directories, sockets and cgroups of its own.
type Daemon struct {
	T       testing.TB
	Release Release // of the next Start
	Dir     string  // of all that is the daemon's
	Shim    string  // program of the shim
	Cgroup  string  // below which containers are to have theirs
	Root    string  // a root file system with busybox, for containers without an image
	TTRPC   string  // socket that shims send their events to; of the next Start
	Process *exec.Cmd
	Conn    *grpc.ClientConn
	config  Config
}

// New starts a daemon, and at the end of the test stops it and looks for what
// has been left behind.
func New(t testing.TB, release Release, config Config) *Daemon {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("containers through containerd need root")
	}
	shim := BuildShim(t)
	// Socket paths are short: t.TempDir() has the test's name in it.
	dir, err := os.MkdirTemp("", "bt")
	if err != nil {
		t.Fatal(err)
	}
	d := &Daemon{T: t, Release: release, Dir: dir, Shim: shim, Cgroup: "/" + filepath.Base(dir), config: config, TTRPC: dir + "/c.sock.ttrpc"}
	t.Cleanup(func() { os.RemoveAll(dir) })
	d.makeRoot()
	unguard, err := d.guard()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unguard)
	t.Cleanup(d.sweep) // also where containerd does not start
	d.Start()
	t.Cleanup(func() {
		d.Stop()
		d.checkLeaks()
	})
	return d
}

// Start starts the daemon, after New only when it has been stopped.
func (d *Daemon) Start() {
	d.T.Helper()
	path := filepath.Join(d.Dir, "config.toml")
	if err := os.WriteFile(path, []byte(d.text()), 0o600); err != nil {
		d.T.Fatal(err)
	}
	log, err := os.OpenFile(filepath.Join(d.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		d.T.Fatal(err)
	}
	defer log.Close()
	d.Process = exec.Command(d.Release.Daemon, "-c", path)
	d.Process.Stdout, d.Process.Stderr = log, log
	// Before 2.3 containerd cannot say where shims have their sockets.
	d.Process.Env = append(os.Environ(), "BERTH_SHIM_SOCKET_DIR="+filepath.Join(d.Dir, "s"))
	d.Process.Env = append(d.Process.Env, d.config.Env...)
	d.Process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.Process.Start(); err != nil {
		d.T.Fatal(err)
	}
	d.Conn, err = grpc.NewClient("unix://"+d.Dir+"/c.sock", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		d.T.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(d.Context(), time.Minute)
	defer cancel()
	if _, err := containers.NewContainersClient(d.Conn).List(ctx, &containers.ListContainersRequest{}, grpc.WaitForReady(true)); err != nil {
		d.T.Fatalf("containerd does not answer: %v\n%s", err, d.Log())
	}
}

// Stop stops the daemon. Its containers go on.
func (d *Daemon) Stop() {
	d.Conn.Close()
	d.Process.Process.Signal(syscall.SIGTERM)
	d.Process.Wait()
}

// Kill stops the daemon as a crash would.
func (d *Daemon) Kill() {
	d.Conn.Close()
	d.Process.Process.Kill()
	d.Process.Wait()
}

// Log is what the daemon and its shims have said.
func (d *Daemon) Log() string {
	b, _ := os.ReadFile(filepath.Join(d.Dir, "log"))
	return string(b)
}

// Context is for calls of the daemon's services.
func (d *Daemon) Context() context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "containerd-namespace", Namespace)
}

func tail(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
