package dropin

import (
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// podmanConfig is that of docs/podman.md, in short.
const podmanConfig = `[engine]
runtime = "berth"
runtime_supports_json = ["berth"]
runtime_supports_nocgroup = ["berth"]
[engine.runtimes]
berth = ["/usr/local/bin/berth"]
`

// podman is one that has the engine for its runtime and an image; as what it is told to
// be before it is installed.
func podman(t *testing.T, as ...func(*Podman)) (*harness.Box, *Podman) {
	t.Helper()
	NeedTime(t)
	b := harness.New(t)
	p := NewPodman(b)
	for _, be := range as {
		be(p)
	}
	p.Install()
	p.Configure(podmanConfig)
	p.Call("import", "--quiet", p.Image(), image).OK(t)
	return b, p
}

// Podman as root.
func TestPodman(t *testing.T) {
	b, p := podman(t)

	statuses(t, p)
	confinement(t, p, b.WriteFile("seccomp.json", noMkdir, 0o644))
	life(t, b, p, true)
	together(t, p)
	build(t, b, p)
	podmanHealth(t, p)
	podmanPod(t, p)
	p.Call(append(limited, image, "sleep", "1000")...).OK(t)
	limits(t, p, "limited", "67108864", "50000", "50")
	p.Call("rm", "-f", "-t", "0", "limited").OK(t)
	// The container shares the cgroup of its caller then.
	if out := p.Call("run", "--rm", "--cgroups", "disabled", image, "cat", "/proc/self/cgroup").OK(t).Stdout; strings.Contains(out, "libpod-") {
		t.Errorf("without cgroups it is in one: %s", out)
	}
	out := p.Call("run", "--rm", "--uidmap", "0:100000:65536", image, "cat", "/proc/self/uid_map").OK(t).Stdout
	if strings.Join(strings.Fields(out), " ") != "0 100000 65536" {
		t.Errorf("the map of ids is %q", out)
	}
}

// Podman as an ordinary user, who is root in the namespace from which podman calls the engine.
func TestPodmanRootless(t *testing.T) {
	b, p := podman(t, (*Podman).AsOrdinaryUser)

	statuses(t, p)
	confinement(t, p, b.WriteFile("seccomp.json", noMkdir, 0o644))
	// Without a cgroup of their own, users can't freeze.
	life(t, b, p, false)
	together(t, p)
	podmanHealth(t, p)
	out := p.Call("run", "--rm", image, "cat", "/proc/self/uid_map").OK(t).Stdout
	if want := "0 54321 1 1 2000000 65536"; strings.Join(strings.Fields(out), " ") != want {
		t.Errorf("the map of ids is %q, want %q", out, want)
	}
	if out := p.Call("run", "--rm", "--userns", "keep-id", image, "id", "-u").OK(t).Stdout; out != "54321\n" {
		t.Errorf("with keep-id he is %q", out)
	}
}

func podmanHealth(t *testing.T, p *Podman) {
	t.Helper()
	p.Call("run", "-d", "--name", "health", "--health-cmd", "test -f /ok", "--health-interval", "disable", image, "sleep", "1000").OK(t)
	p.Call("healthcheck", "run", "health").Exits(t, 1)
	p.Call("exec", "health", "touch", "/ok").OK(t)
	p.Call("healthcheck", "run", "health").OK(t)
	p.Call("rm", "-f", "-t", "0", "health").OK(t)
}

func podmanPod(t *testing.T, p *Podman) {
	t.Helper()
	p.Call("pod", "create", "--infra=false", "--name", "pod").OK(t)
	for _, name := range []string{"one", "two"} {
		p.Call("run", "-d", "--pod", "pod", "--name", name, image, "sleep", "1000").OK(t)
	}
	if out := p.Call("pod", "ps", "--format", "{{.Name}} {{.Status}} {{.NumberOfContainers}}").OK(t).Stdout; out != "pod Running 2\n" {
		t.Errorf("the pod: %q", out)
	}
	p.Call("pod", "stop", "-t", "0", "pod").OK(t)
	p.Call("pod", "rm", "pod").OK(t)
}
