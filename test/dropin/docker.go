package dropin

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/berth-runtime/berth/test/harness"
)

// Docker is a dockerd of a test, with its client.
type Docker struct {
	*Machine
	client, daemon string
	ready          *net.UnixConn
	cmd            *exec.Cmd
	log            *os.File
}

// NewDocker finds Debian's Docker. It is started by Restart, or by what pages call for that.
func NewDocker(b *harness.Box) *Docker {
	b.T.Helper()
	d := &Docker{daemon: harness.NeedTool(b.T, "dockerd", "docker.io")}
	harness.NeedTool(b.T, "containerd-shim-runc-v2", "containerd")
	d.Machine = NewMachine(b)
	// Found now, as one in /usr/local is out of the way.
	d.client = harness.NeedTool(b.T, "docker", "docker.io")
	var err error
	d.ready, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: b.Path("ready"), Net: "unixgram"})
	d.must(err)
	b.T.Cleanup(func() { d.ready.Close() })
	d.log, err = os.Create(b.Path("dockerd.log"))
	d.must(err)
	b.T.Cleanup(func() {
		d.stop()
		if b.T.Failed() {
			text, _ := os.ReadFile(d.log.Name())
			b.T.Logf("the log of dockerd ends:\n%s", text[max(0, len(text)-6000):])
		}
		d.log.Close()
	})
	d.serveSystemctl()
	return d
}

// Call calls the client.
func (d *Docker) Call(args ...string) harness.Result {
	d.b.T.Helper()
	return d.call(d.client, args...)
}

// Command prepares a call of the client.
func (d *Docker) Command(args ...string) *harness.Command { return d.command(d.client, args...) }

// restart starts dockerd, and comes back when it takes calls. Of networks it has none, since not every
// machine has bridges and packet filters; what a test asks for is never about them.
func (d *Docker) restart() error {
	d.stop()
	d.cmd = exec.Command(d.daemon, "--bridge=none", "--iptables=false", "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
		"--exec-opt=native.cgroupdriver=cgroupfs", "--cgroup-parent=/"+d.b.Tag, "--default-ulimit=nofile=4096:4096")
	d.cmd.Env = append(append(os.Environ(), d.Env()...), "NOTIFY_SOCKET="+d.b.Path("ready"), d.b.Mark())
	d.cmd.Stdout, d.cmd.Stderr = d.log, d.log
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := d.cmd.Start(); err != nil {
		d.cmd = nil
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

func (d *Docker) stop() {
	if d.cmd == nil {
		return
	}
	d.cmd.Process.Signal(syscall.SIGTERM)
	d.cmd.Wait()
	d.cmd = nil
}

// Configure writes daemon.json and starts the daemon with it.
func (d *Docker) Configure(config string) {
	d.b.T.Helper()
	d.must(os.MkdirAll("/etc/docker", 0o755))
	d.must(os.WriteFile("/etc/docker/daemon.json", []byte(config), 0o644))
	d.must(d.restart())
}

// serveSystemctl makes a systemctl that knows one thing, to restart docker, and has this process do it: who
// starts a daemon has to wait for its end.
func (d *Docker) serveSystemctl() {
	d.b.T.Helper()
	d.b.WriteFile("bin/systemctl", fmt.Sprintf(`#!/bin/sh
[ "$*" = "restart docker" ] || exit 2
echo restart > %[1]s
read -r answer < %[2]s
[ "$answer" = ok ] || { echo "$answer" >&2; exit 1; }
`, d.b.Path("asked"), d.b.Path("answer")), 0o755)
	for _, name := range []string{"asked", "answer"} {
		d.must(syscall.Mkfifo(d.b.Path(name), 0o600))
	}
	// For reading and writing: opening waits for nobody, and the end never comes by itself.
	asked, err := os.OpenFile(d.b.Path("asked"), os.O_RDWR, 0)
	d.must(err)
	answer, err := os.OpenFile(d.b.Path("answer"), os.O_RDWR, 0)
	d.must(err)
	done := make(chan struct{})
	d.b.T.Cleanup(func() {
		asked.Close()
		<-done
		answer.Close()
	})
	go func() {
		defer close(done)
		lines := bufio.NewScanner(asked)
		for lines.Scan() {
			text := "ok"
			if err := d.restart(); err != nil {
				text = err.Error()
			}
			if _, err := fmt.Fprintln(answer, text); err != nil && !errors.Is(err, os.ErrClosed) {
				return
			}
		}
	}()
}
