package dropin

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/berth-runtime/berth/test/harness"
)

// Docker is a dockerd of a test, with its client.
type Docker struct {
	*Machine
	*daemon
	client, program string
	ready           *net.UnixConn
}

// NewDocker finds Debian's Docker. It is started by Restart, or by what pages call for that.
func NewDocker(b *harness.Box) *Docker {
	b.T.Helper()
	d := &Docker{program: harness.NeedTool(b.T, "dockerd", "docker.io")}
	harness.NeedTool(b.T, "containerd-shim-runc-v2", "containerd")
	d.Machine = NewMachine(b)
	// Found now, as one in /usr/local is out of the way.
	d.client = harness.NeedTool(b.T, "docker", "docker.io")
	d.prepare()
	return d
}

// NewLaterDocker finds what fetch-docker has fetched: a Docker that can be told of a shim.
func NewLaterDocker(b *harness.Box) *Docker {
	b.T.Helper()
	out, err := exec.Command("../dropin/fetch-docker", "--cached").Output()
	if err != nil {
		harness.Skip(b.T, "a Docker of 23 or later has not been fetched (test/dropin/fetch-docker does)")
	}
	d := &Docker{Machine: NewMachine(b)}
	folder := strings.TrimSpace(string(out))
	files, err := os.ReadDir(folder)
	d.must(err)
	for _, f := range files {
		d.must(os.Symlink(filepath.Join(folder, f.Name()), filepath.Join(d.Bin, f.Name())))
	}
	d.program, d.client = filepath.Join(d.Bin, "dockerd"), filepath.Join(d.Bin, "docker")
	d.prepare()
	return d
}

func (d *Docker) prepare() {
	b := d.Machine.b
	b.T.Helper()
	var err error
	d.ready, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: b.Path("ready"), Net: "unixgram"})
	d.must(err)
	b.T.Cleanup(func() { d.ready.Close() })
	d.daemon = newDaemon(b, "dockerd")
	d.serveSystemctl("docker", d.restart)
}

// Call calls the client.
func (d *Docker) Call(args ...string) harness.Result {
	d.Machine.b.T.Helper()
	return d.call(d.client, args...)
}

// Command prepares a call of the client.
func (d *Docker) Command(args ...string) *harness.Command { return d.command(d.client, args...) }

// restart starts dockerd, and comes back when it takes calls. Of networks it has none, since not
// every machine has bridges and packet filters; what a test asks for is never about them.
func (d *Docker) restart() error {
	driver, parent := "cgroupfs", "/"+d.Machine.b.Tag
	if d.systemd {
		driver, parent = "systemd", d.slice()
	}
	cmd := exec.Command(d.program, "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
		"--exec-opt=native.cgroupdriver="+driver, "--cgroup-parent="+parent, "--default-ulimit=nofile=4096:4096")
	cmd.Env = append(append(os.Environ(), d.Env()...), "NOTIFY_SOCKET="+d.Machine.b.Path("ready"), d.Machine.b.Mark())
	if err := d.start(cmd); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	for {
		if err := d.ready.SetReadDeadline(time.Now().Add(harness.Deadline)); err != nil {
			return err
		}
		n, err := d.ready.Read(buf)
		if err != nil {
			return fmt.Errorf("dockerd does not say that it is ready: %w", err)
		}
		if strings.Contains(string(buf[:n]), "READY=1") {
			return nil
		}
	}
}

// Configure writes daemon.json and starts the daemon with it.
func (d *Docker) Configure(config string) {
	d.Machine.b.T.Helper()
	d.must(os.MkdirAll("/etc/docker", 0o755))
	d.must(os.WriteFile("/etc/docker/daemon.json", []byte(config), 0o644))
	d.must(d.restart())
}
