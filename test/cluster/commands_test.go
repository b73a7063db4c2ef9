package cluster

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// What people type: exec with a terminal, cp, logs, attach, port-forward, top's source.
func testCommands(p *Part) {
	p.Pod("web", `
containers:
- name: main
  image: IMAGE
  stdin: true
  command: ["sh", "-c", "mkdir /www; echo served > /www/page; httpd -p 8080 -h /www; while read -r line; do echo said: $line; done"]
`)
	p.UnderBerth("web")
	p.terminal()
	// cp is tar at both ends.
	from, to := filepath.Join(p.T.TempDir(), "from"), filepath.Join(p.T.TempDir(), "to")
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	if err := os.WriteFile(from, content, 0o640); err != nil {
		p.T.Fatal(err)
	}
	p.Kubectl("cp", from, "web:/tmp/file")
	p.Expect("the size", p.Sh("web", "stat -c %s /tmp/file"), "1048576")
	p.Kubectl("cp", "web:/tmp/file", to)
	if back, err := os.ReadFile(to); err != nil || !bytes.Equal(back, content) {
		p.T.Errorf("kubectl cp there and back: %d bytes of %d: %v", len(back), len(content), err)
	}
	p.follow()
	p.forward()
	if _, err := p.Try("exec", "web", "--", "sh", "-c", "exit 7"); err == nil || !strings.Contains(err.Error(), "exit code 7") {
		p.T.Errorf("exec of what exits with 7: %v", err)
	}
	if _, err := p.Try("exec", "web", "--", "/no/such/program"); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		p.T.Errorf("exec of a program that is not there: %v", err)
	}
	// What kubectl top is made from, by the metrics server: the kubelet's own account.
	stats := p.Cluster.Kubectl(p.T, "get", "--raw", "/api/v1/nodes/"+p.NodeOf("web").Name+"/proxy/metrics/resource")
	for _, metric := range []string{"container_cpu_usage_seconds_total", "container_memory_working_set_bytes"} {
		if !strings.Contains(stats, metric+`{container="main",namespace="commands",pod="web"}`) {
			p.T.Errorf("the kubelet has no %s for the container:\n%s", metric, stats)
		}
	}
}

// terminal is exec -it by a person at one, who changes its size.
func (p *Part) terminal() {
	p.T.Helper()
	terminal := (&harness.Box{T: p.T}).Terminal()
	cmd := p.kubectl("--namespace", p.Namespace, "exec", "-it", "web", "--", "sh")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal.Slave, terminal.Slave, terminal.Slave
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		p.T.Fatal(err)
	}
	terminal.Until("# ")
	terminal.Write("tty && stty size\n")
	terminal.Until("/dev/pts/0")
	terminal.Until("25 81")
	terminal.Resize(40, 100)
	terminal.Write("until [ \"$(stty size)\" = '40 100' ]; do :; done; echo re''sized\n")
	terminal.Until("resized")
	terminal.Write("exit\n")
	if err := cmd.Wait(); err != nil {
		p.T.Errorf("kubectl exec -it: %v", err)
	}
}

// follow is logs -f, with lines that attach has the container say meanwhile.
func (p *Part) follow() {
	p.T.Helper()
	logs := p.kubectl("--namespace", p.Namespace, "logs", "--follow", "web")
	out, err := logs.StdoutPipe()
	if err != nil {
		p.T.Fatal(err)
	}
	if err := logs.Start(); err != nil {
		p.T.Fatal(err)
	}
	defer logs.Wait()
	defer logs.Process.Kill()
	attach := p.kubectl("--namespace", p.Namespace, "attach", "--stdin", "web")
	in, err := attach.StdinPipe()
	if err != nil {
		p.T.Fatal(err)
	}
	if err := attach.Start(); err != nil {
		p.T.Fatal(err)
	}
	defer attach.Wait()
	defer attach.Process.Kill()
	lines := bufio.NewScanner(out)
	for _, word := range []string{"one", "two", "three"} {
		io.WriteString(in, word+"\n")
		if !lines.Scan() || lines.Text() != "said: "+word {
			p.T.Errorf("logs -f has %q after attach said %s: %v", lines.Text(), word, lines.Err())
		}
	}
}

// forward asks the pod's server through port-forward.
func (p *Part) forward() {
	p.T.Helper()
	cmd := p.kubectl("--namespace", p.Namespace, "port-forward", "pod/web", ":8080")
	out, err := cmd.StdoutPipe()
	if err != nil {
		p.T.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		p.T.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	lines.Scan() // Forwarding from 127.0.0.1:PORT -> 8080
	address, _, _ := strings.Cut(strings.TrimPrefix(lines.Text(), "Forwarding from "), " ")
	answer, err := http.Get("http://" + address + "/page")
	if err != nil {
		p.T.Fatalf("through port-forward, that said %q: %v", lines.Text(), err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil || string(page) != "served\n" {
		p.T.Errorf("through port-forward: %q, %v", page, err)
	}
}

// A container for debugging joins a running pod, in the namespaces of its container.
func testEphemeral(p *Part) {
	p.Pod("running", `
containers:
- name: main
  image: IMAGE
  command: ["sh", "-c", "exec sleep 3600"]
`)
	p.Kubectl("debug", "running", "--image", toolsImage, "--container", "debugger", "--target", "main", "--", "sh", "-c", "ps -o args; exec sleep 3600")
	p.Kubectl("wait", "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.running}", "pod/running", "--timeout", patience.String())
	p.WaitIn(p.T, "the debugger seeing the container's process", func() (string, bool) {
		out, err := p.Try("logs", "running", "--container", "debugger")
		return out, err == nil && strings.Contains(out, "sleep 3600")
	})
	p.UnderBerth("running")
}
