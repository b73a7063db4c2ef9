package dropin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// An annotation has what a container's profile refuses named, of podman exec too, and another one
// records a profile under which the same runs again.
func TestPodmanSeccompAnnotations(t *testing.T) {
	b, p := podman(t)
	refusing := b.WriteFile("seccomp.json", `{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [
		{"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO"}, {"names": ["symlink", "symlinkat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 95}]}`, 0o644)

	p.Call("run", "-d", "--name", "denied", "--annotation", "run.berth.seccomp.denials=true", "--security-opt", "seccomp="+refusing,
		image, "sh", "-c", "mkdir /x; exec sleep 1000").OK(t)
	if r := p.Call("exec", "denied", "ln", "-s", "a", "/y").Exits(t, 1); !strings.Contains(r.Stderr, "not supported") {
		t.Errorf("the errno is not the profile's: %s", r.Stderr)
	}
	text := ""
	wait.Until(t, "both are told", func() bool {
		text = p.berth("inspect", inspect(t, p, "denied", "{{.Id}}")).OK(t).Stdout
		return strings.Contains(text, "mkdir") && strings.Contains(text, "symlink")
	})
	for _, want := range []string{" by mkdir[", "EPERM, seccomp rule /linux/seccomp/syscalls/0", " by ln[", "/linux/seccomp/syscalls/1"} {
		if !strings.Contains(text, want) {
			t.Errorf("inspect says nothing of %s:\n%s", want, text)
		}
	}
	p.Call("rm", "-f", "-t", "0", "denied").OK(t)

	learned := "/var/lib/berth/learned"
	p.must(os.MkdirAll(learned, 0o755))
	p.must(os.MkdirAll("/etc/berth", 0o755))
	p.must(os.WriteFile("/etc/berth/berth.toml", []byte("seccomp-learn-directory = \""+learned+"\"\n"), 0o644))
	p.Call("run", "--name", "learning", "--annotation", "run.berth.seccomp.learn=true", image, "sh", "-c", "mkdir /x && rmdir /x").OK(t)
	profile := filepath.Join(learned, inspect(t, p, "learning", "{{.Id}}")+".json")
	p.Call("rm", "learning").OK(t)
	under := func(script string) harness.Result {
		return p.Call("run", "--rm", "--security-opt", "seccomp="+profile, image, "sh", "-c", script)
	}
	under("mkdir /x && rmdir /x").OK(t)
	under("mkdir /x && ln -s a /x/b").Exits(t, 1)
}

// berth calls the engine that podman calls, of which it finds the containers.
func (p *Podman) berth(args ...string) harness.Result {
	p.b.T.Helper()
	c := p.command("/usr/local/bin/berth", args...)
	c.Env, c.Dir, c.Wrap = p.Env(), "/", p.Become()
	return c.Run()
}
