package dropin

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/berth-runtime/berth/test/harness"
)

// Podman is podman as root, or as an ordinary user.
type Podman struct {
	*Machine
	program string
	uid     int
	env     []string
}

// NewPodman finds Debian's podman, and tells it of a machine without systemd, networks and
// CAP_SYS_RESOURCE.
func NewPodman(b *harness.Box) *Podman {
	b.T.Helper()
	harness.NeedTool(b.T, "conmon", "conmon")
	harness.NeedTool(b.T, "podman", "podman")
	p := &Podman{Machine: NewMachine(b)}
	p.program = harness.NeedTool(b.T, "podman", "podman")
	p.leaveOrphans()
	p.must(os.MkdirAll("/etc/containers/containers.conf.d", 0o755))
	p.must(os.WriteFile("/etc/containers/containers.conf.d/machine.conf", []byte(`[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
`), 0o644))
	return p
}

// AsOrdinaryUser makes the calls those of a user who was made for it, with subordinate ids.
func (p *Podman) AsOrdinaryUser() {
	t := p.b.T
	t.Helper()
	for _, tool := range []string{"newuidmap", "newgidmap"} {
		harness.NeedTool(t, tool, "uidmap")
	}
	harness.NeedTool(t, "setpriv", "util-linux")
	harness.NeedNamespace(t, "user")
	const name = "berth-test"
	p.uid = 54321 // no distribution gives it out by itself
	appendTo := func(file, line string) {
		t.Helper()
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		p.must(err)
		_, err = f.WriteString(line)
		p.must(err)
		p.must(f.Close())
	}
	home := p.Own("home")
	// As logind makes it. The command by which conmon has podman note a container's end refuses
	// paths of more than 50 characters, and a wait for the end then takes 20 seconds.
	runtime := fmt.Sprintf("/run/user/%d", p.uid)
	p.must(os.MkdirAll(filepath.Dir(runtime), 0o755))
	p.must(os.Mkdir(runtime, 0o700))
	p.must(os.Chown(runtime, p.uid, p.uid))
	appendTo("/etc/passwd", fmt.Sprintf("%s:x:%d:%d::%s:/bin/sh\n", name, p.uid, p.uid, home))
	appendTo("/etc/group", fmt.Sprintf("%s:x:%d:\n", name, p.uid))
	for _, file := range []string{"/etc/subuid", "/etc/subgid"} {
		appendTo(file, name+":2000000:65536\n")
	}
	t.Cleanup(func() { p.endPause(filepath.Join(runtime, "libpod/tmp/pause.pid")) })
	p.env = []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + runtime, "USER=" + name, "LOGNAME=" + name}
}

// endPause ends the process that keeps an ordinary user's namespaces from one call to the next.
func (p *Podman) endPause(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return // none was needed
	}
	if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Call calls it.
func (p *Podman) Call(args ...string) harness.Result {
	p.b.T.Helper()
	return p.Command(args...).Run()
}

// Command prepares a call.
func (p *Podman) Command(args ...string) *harness.Command {
	c := p.command(p.program, args...)
	c.Env, c.Dir, c.Wrap = p.Env(), "/", p.Become()
	return c
}

// Env is the environment of calls.
func (p *Podman) Env() []string { return append(p.Machine.Env(), p.env...) }

// Become are the words in front of a call that make it the user's.
func (p *Podman) Become() []string {
	if p.uid == 0 {
		return nil
	}
	id := strconv.Itoa(p.uid)
	return []string{"setpriv", "--reuid", id, "--regid", id, "--clear-groups", "--"}
}

// Own makes a directory in the box that is the user's.
func (p *Podman) Own(name string) string {
	p.b.T.Helper()
	dir := p.b.Path(name)
	p.must(os.Mkdir(dir, 0o700))
	p.must(os.Chown(dir, p.uid, p.uid))
	return dir
}

// Configure makes berth podman's runtime.
func (p *Podman) Configure(config string) {
	p.b.T.Helper()
	p.must(os.WriteFile("/etc/containers/containers.conf.d/berth.conf", []byte(config), 0o644))
}
