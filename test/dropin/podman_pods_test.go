package dropin

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// What Podman does with more than one container, or with one more than once.
func TestPodmanPods(t *testing.T) {
	b, p := podman(t)
	podmanRestarts(t, p)
	podmanInfra(t, p)
	podmanKube(t, b, p)
	podmanCheckpoint(t, b, p)
}

// One that fails is started again, as often as was said.
func podmanRestarts(t *testing.T, p *Podman) {
	t.Helper()
	p.Call("run", "-d", "--name", "failing", "--restart", "on-failure:2", image, "sh", "-c", "echo try; exit 4").OK(t)
	wait.Until(t, "two restarts and no more", func() bool { return strings.Count(p.Call("logs", "failing").Stdout, "try\n") == 3 })
	wait.Until(t, "the end", func() bool { return inspect(t, p, "failing", "{{.State.Status}} {{.State.ExitCode}}") == "exited 4" })
	p.Call("rm", "failing").OK(t)
}

// The containers of a pod are in the namespaces of its first, and in its cgroup.
func podmanInfra(t *testing.T, p *Podman) {
	t.Helper()
	p.Call("pod", "create", "--name", "pod", "--infra-image", image, "--infra-command", "sleep 1000", "--hostname", "of-the-pod", "--share", "net,uts,ipc").OK(t)
	for _, name := range []string{"one", "two"} {
		p.Call("run", "-d", "--pod", "pod", "--name", name, image, "sleep", "1000").OK(t)
	}
	for _, ns := range []string{"uts", "ipc", "net"} {
		one, two := p.Call("exec", "one", "readlink", "/proc/self/ns/"+ns).OK(t), p.Call("exec", "two", "readlink", "/proc/self/ns/"+ns).OK(t)
		if one.Stdout != two.Stdout {
			t.Errorf("%s namespaces %q and %q", ns, one.Stdout, two.Stdout)
		}
	}
	if out := p.Call("exec", "one", "hostname").OK(t).Stdout; out != "of-the-pod\n" {
		t.Errorf("the host name is %q", out)
	}
	p.Call("pod", "stop", "-t", "0", "pod").OK(t)
	p.Call("pod", "rm", "pod").OK(t)
}

// A pod as Kubernetes writes it.
func podmanKube(t *testing.T, b *harness.Box, p *Podman) {
	t.Helper()
	harness.NeedTool(t, "catatonit", "catatonit") // podman makes the image of a pod's first container of it
	file := b.WriteFile("pod.yaml", `apiVersion: v1
kind: Pod
metadata:
  name: kube
spec:
  containers:
  - name: main
    image: `+image+`
    imagePullPolicy: Never
    command: ["sh", "-c", "echo from $WHO; exec sleep 1000"]
    env:
    - {name: WHO, value: a manifest}
    resources:
      limits: {memory: 64Mi}
`, 0o644)
	p.Call("kube", "play", file).OK(t)
	wait.Until(t, "what it prints", func() bool { return p.Call("logs", "kube-main").Stdout == "from a manifest\n" })
	if got := limit(t, p, "kube-main", "memory", "memory.limit_in_bytes", "memory.max"); got != "67108864" {
		t.Errorf("its limit of memory is %s", got)
	}
	p.Call("kube", "down", file).OK(t)
	if out := p.Call("pod", "ps", "-q").OK(t).Stdout; out != "" {
		t.Errorf("pods are left: %q", out)
	}
}

// A container that is written down goes on where it was.
func podmanCheckpoint(t *testing.T, b *harness.Box, p *Podman) {
	t.Helper()
	if err := os.Symlink(harness.NeedCriu(t), filepath.Join(p.Bin, "criu")); err != nil {
		t.Fatal(err)
	}
	const script = `u=$(cat /proc/sys/kernel/random/uuid); i=0; while :; do i=$((i+1)); echo $u $i > /new; mv /new /count; sleep 0.1; done`
	p.Call("run", "-d", "--name", "written", image, "sh", "-c", script).OK(t)
	// What only the process's memory has, and how far it is.
	count := func() (mark string, n int) {
		mark, text, _ := strings.Cut(strings.TrimSpace(p.Call("exec", "written", "cat", "/count").Stdout), " ")
		n, _ = strconv.Atoi(text)
		return mark, n
	}
	wait.Until(t, "it counts", func() bool { _, n := count(); return n > 3 })
	mark, _ := count()
	p.Call("container", "checkpoint", "written").OK(t)
	if got := inspect(t, p, "written", "{{.State.Status}}"); got != "exited" {
		t.Errorf("a container that is written down is %s", got)
	}
	p.Call("container", "restore", "written").OK(t)
	again, before := count()
	wait.Until(t, "it counts on", func() bool { _, n := count(); return n > before })
	if after, _ := count(); mark == "" || again != mark || after != mark {
		t.Errorf("it begins anew: %q, then %q and %q", mark, again, after)
	}
	// As an archive, it goes on in another container.
	archive := b.Path("written.tar.gz")
	p.Call("container", "checkpoint", "--export", archive, "written").OK(t)
	p.Call("rm", "-f", "-t", "0", "written").OK(t)
	p.Call("container", "restore", "--import", archive, "--name", "written").OK(t)
	again, before = count()
	wait.Until(t, "it counts on", func() bool { _, n := count(); return n > before })
	if again != mark {
		t.Errorf("from an archive it begins anew: %q, then %q", mark, again)
	}
	p.Call("rm", "-f", "-t", "0", "written").OK(t)
}
