package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// What a container's filter refuses is named where its annotation asks for that, and goes on to be
// when the shim is upgraded.
func TestDenialsNamedAcrossAnUpgrade(t *testing.T) {
	n := newNode(t)
	spec := n.spec("c", "sh", "-c", "busybox mkdir /tmp/one; read go < /go; busybox rmdir /tmp/two; echo asked")
	spec.Annotations = map[string]string{"run.berth.seccomp.denials": "true"}
	spec.Linux.Seccomp = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow, Syscalls: []specs.LinuxSyscall{
		{Names: []string{"mkdir", "mkdirat"}, Action: specs.ActErrno}, {Names: []string{"rmdir", "unlinkat"}, Action: specs.ActErrno},
	}}
	out := n.pipe("out").read()
	b := n.define("c", spec)
	n.must(unix.Mkfifo(filepath.Join(n.root, "go"), 0o600))
	n.must(b.create(func(r *taskapi.CreateTaskRequest) { r.Stdout, r.Stderr = out.path, out.path }))
	n.must(b.begin(""))
	if text, err := n.upgrade("c"); err != nil || !strings.Contains(text, "upgraded from") {
		t.Fatalf("%q, %v", text, err)
	}
	n.must(os.WriteFile(filepath.Join(n.root, "go"), []byte("go\n"), 0))
	if got := b.wait(""); got != 0 {
		t.Errorf("status %d", got)
	}
	found, err := filepath.Glob(filepath.Join(n.dir, "engine", "*", "c", "denied*"))
	n.must(err)
	if len(found) != 1 {
		t.Fatalf("files of denials: %q", found)
	}
	text, err := os.ReadFile(found[0])
	n.must(err)
	for _, want := range []string{"mkdir", "EPERM", "/linux/seccomp/syscalls/0", "/linux/seccomp/syscalls/1"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	n.must(b.delete(""))
	<-out.done
	if got := out.String(); strings.Count(got, "Operation not permitted") != 2 || !strings.HasSuffix(got, "asked\n") {
		t.Errorf("it wrote %q", got)
	}
	b.shutdown()
	b.gone()
}
