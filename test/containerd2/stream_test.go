package containerd2

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// stream speaks to a process by the way that kubectl's exec and attach take.
func stream(t *testing.T, address string, options remotecommand.StreamOptions) error {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{}, "POST", u)
	if err != nil {
		t.Fatal(err)
	}
	return executor.StreamWithContext(t.Context(), options)
}

// sizes are told to a terminal one after the other.
type sizes chan remotecommand.TerminalSize

func (s sizes) Next() *remotecommand.TerminalSize {
	size, more := <-s
	if !more {
		return nil
	}
	return &size
}

func TestExecAndAttach(t *testing.T) { onNodes(t, execAndAttach) }

func execAndAttach(t *testing.T, n *node) {
	p := n.runPod()
	c := p.run("while read x; do echo got $x; done; echo end; sleep 1000", func(c *cri.ContainerConfig) { c.Stdin, c.StdinOnce = true, true })

	// exec with three streams, and its exit code.
	r, err := n.Exec(n.ctx(), &cri.ExecRequest{ContainerId: c.id, Cmd: []string{"sh", "-c", "cat; echo err >&2; exit 6"}, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	err = stream(t, r.Url, remotecommand.StreamOptions{Stdin: strings.NewReader("some input\n"), Stdout: &stdout, Stderr: &stderr})
	if err == nil || !strings.Contains(err.Error(), "exit code 6") || stdout.String() != "some input\n" || stderr.String() != "err\n" {
		t.Errorf("exec: %v, %q, %q", err, &stdout, &stderr)
	}

	// exec with a terminal, which is resized while the process waits for that.
	r, err = n.Exec(n.ctx(), &cri.ExecRequest{ContainerId: c.id, Cmd: []string{"sh", "-c", "until stty size | grep '40 101'; do sleep 0.05; done"}, Tty: true, Stdin: true, Stdout: true})
	if err != nil {
		t.Fatal(err)
	}
	queue := make(sizes, 1)
	queue <- remotecommand.TerminalSize{Width: 101, Height: 40}
	input, hold := io.Pipe() // the end of the input would be typed as one
	stdout.Reset()
	err = stream(t, r.Url, remotecommand.StreamOptions{Stdin: input, Stdout: &stdout, Tty: true, TerminalSizeQueue: queue})
	hold.Close()
	close(queue)
	if err != nil || !strings.Contains(stdout.String(), "40 101") {
		t.Errorf("exec with a terminal: %v, %q", err, &stdout)
	}

	// attach, whose end ends the container's input.
	a, err := n.Attach(n.ctx(), &cri.AttachRequest{ContainerId: c.id, Stdin: true, Stdout: true, Stderr: true})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	attached := make(chan error, 1)
	go func() {
		u, _ := url.Parse(a.Url)
		executor, err := remotecommand.NewSPDYExecutor(&rest.Config{}, "POST", u)
		if err == nil {
			err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader("one\ntwo\n"), Stdout: io.Discard, Stderr: io.Discard})
		}
		attached <- err
	}()
	wait.Until(t, "the input has come and ended", func() bool {
		log, _ := os.ReadFile(c.log)
		return strings.Contains(string(log), "got one\n") && strings.Contains(string(log), "got two\n") && strings.Contains(string(log), "F end\n")
	})
	cancel()
	<-attached
	p.remove()
}

// ownNetwork gives a pod a network namespace, if this machine can.
func ownNetwork(t *testing.T) func(*cri.PodSandboxConfig) {
	t.Helper()
	for _, plugin := range []string{"ptp", "host-local", "loopback"} {
		if _, err := os.Stat("/usr/lib/cni/" + plugin); err != nil {
			t.Skipf("the CNI plugins are not installed (Debian has them in containernetworking-plugins): %v", err)
		}
	}
	if out, err := exec.Command("unshare", "--net", "ip", "link", "add", "berth0", "type", "veth", "peer", "name", "berth1").CombinedOutput(); err != nil {
		t.Skipf("no pairs of virtual network interfaces can be made here: %v: %s", err, out)
	}
	return func(c *cri.PodSandboxConfig) {
		c.Hostname = "in-a-pod"
		c.Linux.SecurityContext.NamespaceOptions.Network = cri.NamespaceMode_POD
	}
}

// A pod has a network namespace of its own, which all its containers share, and
// into which containerd itself goes to forward a port.
func TestPortForward(t *testing.T) { onNodes(t, portForward) }

func portForward(t *testing.T, n *node) {
	p := n.runPod(ownNetwork(t))
	a := p.run("nc -ll -p 8080 -e echo pong")
	b := p.run("sleep 1000")
	if got := b.exec("readlink /proc/self/ns/net"); got != a.exec("readlink /proc/self/ns/net") {
		t.Error("two containers of a pod are not in one network namespace")
	}
	if got := b.exec("hostname"); got != "in-a-pod\n" {
		t.Errorf("hostname %q", got)
	}
	status, err := n.PodSandboxStatus(n.ctx(), &cri.PodSandboxStatusRequest{PodSandboxId: p.id})
	if err != nil || !strings.HasPrefix(status.Status.GetNetwork().GetIp(), "198.18.77.") {
		t.Errorf("network of the pod: %v, %v", status, err)
	}
	if got := b.exec("until nc 127.0.0.1 8080 < /dev/null; do sleep 0.05; done"); got != "pong\n" {
		t.Errorf("from one container of the pod to another: %q", got)
	}
	wait.Until(t, "an answer through the forwarded port", func() bool {
		got, err := throughPort(n, p, 8080)
		return err == nil && got == "pong\n"
	})
	p.remove()
}

// throughPort reads from a port of a pod as kubectl port-forward would.
func throughPort(n *node, p *pod, port int) (string, error) {
	r, err := n.PortForward(n.ctx(), &cri.PortForwardRequest{PodSandboxId: p.id, Port: []int32{int32(port)}})
	if err != nil {
		return "", err
	}
	u, err := url.Parse(r.Url)
	if err != nil {
		return "", err
	}
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{})
	if err != nil {
		return "", err
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	defer close(stop)
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", u)
	forwarder, err := portforward.New(dialer, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return "", err
	}
	failed := make(chan error, 1)
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-failed:
		return "", err
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{}).DialContext(n.ctx(), "tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	answer, err := io.ReadAll(conn)
	return string(answer), err
}
