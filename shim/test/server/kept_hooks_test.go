package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"

	"github.com/berth-runtime/berth/internal/test/wait"
)

// hooked gives a container hooks, each of which writes its name to a file, the slow one before it
// waits for a file that go makes.
func (n *node) hooked(id string) (spec *specs.Spec, ran func() []string, letGo func()) {
	log, gone := filepath.Join(n.dir, "hooks-"+id), filepath.Join(n.dir, "go-"+id)
	hook := func(name string) specs.Hook {
		script := fmt.Sprintf("echo %s >> %s", name, log)
		if strings.HasPrefix(name, "slow") {
			script += fmt.Sprintf("; until [ -e %s ]; do sleep 0.02; done", gone)
		}
		return specs.Hook{Path: "/bin/sh", Args: []string{"sh", "-c", script}}
	}
	spec = n.spec(id, "sleep", "1000")
	spec.Hooks = &specs.Hooks{}
	add := func(kind *[]specs.Hook, names ...string) {
		for _, name := range names {
			*kind = append(*kind, hook(name))
		}
	}
	switch id {
	case "start":
		add(&spec.Hooks.Poststart, "slow", "next")
	case "create":
		add(&spec.Hooks.CreateRuntime, "before", "slow")
	}
	ran = func() []string {
		text, _ := os.ReadFile(log)
		return strings.Fields(string(text))
	}
	return spec, ran, func() { n.must(os.WriteFile(gone, nil, 0o600)) }
}

// killDuring kills a shim while a hook of its call goes on, and gives what the call comes to.
func (b *box) killDuring(call func() error, ran func() []string, letGo func()) error {
	b.n.t.Helper()
	before, err := b.Connect(b.n.ctx(), &taskapi.ConnectRequest{ID: b.id})
	b.n.must(err)
	answer := make(chan error, 1)
	go func() { answer <- call() }()
	wait.Until(b.n.t, "the hook", func() bool { return slices.Contains(ran(), "slow") })
	b.n.must(unix.Kill(int(before.ShimPid), unix.SIGKILL))
	wait.Until(b.n.t, "the hook of the next shim", func() bool {
		return len(ran()) > len(slices.Compact(ran())) || slices.Index(ran(), "slow") != len(ran())-1
	})
	letGo()
	err = <-answer
	after, connectErr := b.Connect(b.n.ctx(), &taskapi.ConnectRequest{ID: b.id})
	b.n.must(connectErr)
	b.shim.keeperOf(after.ShimPid)
	return err
}

// A start goes on with its poststart hooks when its shim was killed beside one of them: with all,
// for no one knows what that one has done.
func TestPoststartHooksWithKeeper(t *testing.T) {
	t.Setenv("BERTH_SHIM_KEEPER", "1")
	n := newNode(t)
	spec, ran, letGo := n.hooked("start")
	b := n.define("start", spec)
	n.must(b.create())
	n.must(b.killDuring(func() error { return b.begin("") }, ran, letGo))
	if got := ran(); !slices.Equal(got, []string{"slow", "slow", "next"}) {
		t.Errorf("hooks %q", got)
	}
	n.must(b.kill(uint32(unix.SIGKILL)))
	b.wait("")
	n.must(b.delete(""))
	b.shutdown()
	b.gone()
	n.wantEvents("start", "create", "start", "exit start 137", "delete")
}

// A create that is cut off beside a hook is undone and done again, and so are its hooks: the
// container that they have to do with is another one.
func TestCreateHooksWithKeeper(t *testing.T) {
	t.Setenv("BERTH_SHIM_KEEPER", "1")
	n := newNode(t)
	spec, ran, letGo := n.hooked("create")
	b := n.define("create", spec)
	n.must(b.killDuring(func() error { return b.create() }, ran, letGo))
	if got := ran(); !slices.Equal(got, []string{"before", "slow", "before", "slow"}) {
		t.Errorf("hooks %q", got)
	}
	n.must(b.begin(""))
	n.must(b.kill(uint32(unix.SIGKILL)))
	b.wait("")
	n.must(b.delete(""))
	b.shutdown()
	b.gone()
	n.wantEvents("create", "create", "start", "exit create 137", "delete")
}
