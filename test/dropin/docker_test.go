package dropin

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// Docker with the engine as the runtime of all containers, build steps among them.
func TestDocker(t *testing.T) {
	NeedTime(t)
	b := harness.New(t)
	d := NewDocker(b)
	d.Install()
	d.Configure(`{"runtimes": {"berth": {"path": "/usr/local/bin/berth"}}, "default-runtime": "berth"}`)
	d.Call("import", d.Image(), image).OK(t)

	dockerWhole(t, b, d)
}

// Docker with the shim too. 20.10 can't be told of one, but takes the first of the name that it
// knows.
func TestDockerByTheShim(t *testing.T) {
	NeedTime(t)
	b := harness.New(t)
	d := NewDocker(b)
	d.Install()
	shim := d.InstallShim("containerd-shim-runc-v2")
	d.Configure(`{"runtimes": {"berth": {"path": "/usr/local/bin/berth"}}, "default-runtime": "berth"}`)
	d.Call("import", d.Image(), image).OK(t)

	d.Call("run", "-d", "--name", "child", image, "sleep", "1000").OK(t)
	isChildOf(t, d, "child", shim)
	d.Call("rm", "-f", "child").OK(t)
	statuses(t, d)
	life(t, b, d, true)
	dockerLimits(t, d)
	dockerHealth(t, d)
	dockerRestarts(t, d)
}

// Docker with the shim by its type, as the page has it, and what of its options Docker passes on.
func TestDockerByRuntimeType(t *testing.T) {
	NeedTime(t)
	b := harness.New(t)
	d := NewLaterDocker(b)
	shim := d.InstallShim("containerd-shim-berth-v2")
	configs := ofPage(t, "../../docs/docker.md")
	if len(configs) != 2 {
		t.Fatalf("the page has %d configurations in JSON", len(configs))
	}
	d.Configure(configs[0])
	d.Call("import", d.Image(), image).OK(t)
	for i, runtime := range []string{"berth", "io.containerd.berth.v2"} {
		child := fmt.Sprintf("child%d", i)
		d.Call("run", "-d", "--name", child, "--memory", "64m", "--runtime", runtime, image, "sleep", "1000").OK(t)
		isChildOf(t, d, child, shim)
		d.knows("/run/containerd/berth/moby", child)
		if d.systemd {
			isUnit(t, inspect(t, d, child, "{{.State.Pid}}"), d.slice()+"/docker-"+inspect(t, d, child, "{{.Id}}")+".scope", "67108864")
		}
		d.Call("rm", "-f", child).OK(t)
	}
	d.must(os.MkdirAll("/etc/berth", 0o755))
	d.must(os.WriteFile("/etc/berth/docker.toml", []byte("Root = \"/run/shim\"\n"), 0o644))
	d.Configure(strings.TrimSuffix(configs[1], "}\n") + `, "default-runtime": "berth"}`)
	d.Call("run", "-d", "--name", "child", image, "sleep", "1000").OK(t)
	d.knows("/run/shim/moby", "child")
	d.Call("rm", "-f", "child").OK(t)

	dockerWhole(t, b, d)
}

// dockerWhole does all that the engine is tried with under Docker.
func dockerWhole(t *testing.T, b *harness.Box, d *Docker) {
	t.Helper()
	statuses(t, d)
	confinement(t, d, b.WriteFile("seccomp.json", noMkdir, 0o644))
	life(t, b, d, true)
	together(t, d)
	build(t, b, d)
	dockerLimits(t, d)
	dockerHealth(t, d)
	dockerRestarts(t, d)
	dockerDevices(t, d)
}

// ofPage are the configurations that a page has in JSON.
func ofPage(t *testing.T, page string) (configs []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(text), "\n```json\n")[1:] {
		config, _, _ := strings.Cut(block, "```\n")
		configs = append(configs, config)
	}
	return configs
}

// isChildOf says whether a container's first process was made by a program.
func isChildOf(t *testing.T, d *Docker, name, program string) {
	t.Helper()
	status, err := os.ReadFile("/proc/" + inspect(t, d, name, "{{.State.Pid}}") + "/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "PPid:")
	parent := strings.Fields(rest)[0]
	if exe, err := os.Readlink("/proc/" + parent + "/exe"); err != nil || exe != program {
		t.Errorf("the parent of the container's process is %s, %v", exe, err)
	}
}

// knows says whether the engine has a container in a state directory.
func (d *Docker) knows(root, name string) {
	b := d.Machine.b
	b.T.Helper()
	id := strings.TrimSpace(d.Call("inspect", "--format", "{{.Id}}", name).OK(b.T).Stdout)
	if out := b.Berth("--root", root, "list", "-q").OK(b.T).Stdout; out != id+"\n" {
		b.T.Errorf("berth --root %s list shows %q, not %s", root, out, id)
	}
}

// Limits hold from the start, and are changed while the container runs.
func dockerLimits(t *testing.T, d *Docker) {
	t.Helper()
	d.Call(append(limited, image, "sleep", "1000")...).OK(t)
	limits(t, d, "limited", "67108864", "50000", "50")
	d.Call("update", "--memory", "128m", "--memory-swap", "128m", "--cpus", "1.5", "--pids-limit", "70", "limited").OK(t)
	limits(t, d, "limited", "134217728", "150000", "70")
	d.Call("rm", "-f", "limited").OK(t)
	r := d.Call("run", "--rm", "--memory", "20m", "--memory-swap", "20m", image, "sh", "-c", `x=$(dd if=/dev/zero bs=1M count=100 | tr "\0" a); echo survived`)
	if r.Code != 137 {
		t.Errorf("what takes more memory than it may ended with %d: %s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// Health is found out by exec.
func dockerHealth(t *testing.T, d *Docker) {
	t.Helper()
	d.Call("run", "-d", "--name", "health", "--health-cmd", "test -f /ok", "--health-interval", "500ms", "--health-retries", "1", image, "sleep", "1000").OK(t)
	is := func(want string) func() bool {
		return func() bool { return inspect(t, d, "health", "{{.State.Health.Status}}") == want }
	}
	wait.Until(t, "a failing check", is("unhealthy"))
	d.Call("exec", "health", "touch", "/ok").OK(t)
	wait.Until(t, "a passing check", is("healthy"))
	d.Call("rm", "-f", "health").OK(t)
}

func dockerRestarts(t *testing.T, d *Docker) {
	t.Helper()
	d.Call("run", "-d", "--name", "failing", "--restart", "on-failure:2", image, "sh", "-c", "echo try; exit 4").OK(t)
	wait.Until(t, "two restarts and no more", func() bool {
		return inspect(t, d, "failing", "{{.RestartCount}} {{.State.Status}} {{.State.ExitCode}}") == "2 exited 4"
	})
	if out := d.Call("logs", "failing").OK(t).Stdout; out != "try\ntry\ntry\n" {
		t.Errorf("it printed %q", out)
	}
	d.Call("rm", "failing").OK(t)
}

// A device is there under the name that was asked for, to be used as was asked; an init is the
// first process.
func dockerDevices(t *testing.T, d *Docker) {
	t.Helper()
	r := d.Call("run", "--rm", "--device", "/dev/zero:/dev/other:r", "--device-cgroup-rule", "c 42:* rw", "--init", image, "sh", "-c",
		`head -c 3 /dev/other | od -An -tx1; readlink /proc/1/exe; mknod /tmp/tun c 10 200; (: < /tmp/tun) 2>&1 | grep -c "not permitted"; mknod /tmp/kmsg c 1 11; (: < /tmp/kmsg) 2>&1 | grep -c "not permitted"`)
	if want := " 00 00 00\n/sbin/docker-init\n0\n1\n"; r.Stdout != want {
		t.Errorf("printed %q, want %q\n%s", r.Stdout, want, r.Stderr)
	}
}
