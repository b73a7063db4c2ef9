package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	taskapi "github.com/containerd/containerd/api/runtime/task/v3"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/shim/internal/bundle/options"
	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
)

// One shim for all containers of a namespace, by the shim's own options.
func TestGroupingByOwnOptions(t *testing.T) {
	n := newNode(t)
	own := &wire.BerthOptions{Grouping: options.PerNamespace, Runc: &wire.RuncOptions{Root: filepath.Join(n.dir, "engine")}}
	n.options = &anypb.Any{TypeUrl: wire.BerthOptionsURL, Value: wire.Marshal(own)}
	a, b := n.run("a", "sleep", "1000"), n.run("b", "sleep", "1000")
	if a.shim.pid != b.shim.pid {
		t.Errorf("shims %d and %d", a.shim.pid, b.shim.pid)
	}
	a.remove()
	if r, err := b.State(n.ctx(), &taskapi.StateRequest{ID: "b"}); err != nil || r.Pid != b.pid {
		t.Errorf("%v, %v", r, err)
	}
	// The others have one each.
	own.Grouping = options.PerContainer
	n.options = &anypb.Any{TypeUrl: wire.BerthOptionsURL, Value: wire.Marshal(own)}
	c := n.run("c", "sleep", "1000")
	if c.shim.pid == b.shim.pid {
		t.Error("a container that wants a shim of its own shares one")
	}
	c.remove()
	b.remove()
	b.gone()
}

func TestShimCgroup(t *testing.T) {
	n := newNode(t)
	var made []string
	for _, pattern := range hierarchies() {
		tops, _ := filepath.Glob(pattern + "/cgroup.procs")
		for _, procs := range tops {
			dir := filepath.Join(filepath.Dir(procs), n.cgroup, "shim")
			n.must(os.MkdirAll(dir, 0o755))
			made = append(made, dir)
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} { // version 1 lets nobody in without
				for _, at := range []string{filepath.Dir(dir), dir} {
					if value, err := os.ReadFile(filepath.Join(filepath.Dir(procs), file)); err == nil {
						os.WriteFile(filepath.Join(at, file), value, 0)
					}
				}
			}
		}
	}
	if len(made) == 0 {
		t.Skip("there is no cgroup file system at /sys/fs/cgroup")
	}
	o := &runcoptions.Options{Root: filepath.Join(n.dir, "engine"), ShimCgroup: n.cgroup + "/shim"}
	n.options = n.any("containerd.runc.v1.Options", o)
	b := n.define("c", n.spec("c", "true"))
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", b.shim.pid))
	n.must(err)
	for line := range strings.Lines(string(text)) {
		if !strings.HasSuffix(strings.TrimSpace(line), n.cgroup+"/shim") && !strings.Contains(line, ":cpuset:") {
			t.Errorf("the shim is in %s", line)
		}
	}
	b.shutdown()
	b.gone()
	wait.Until(n.t, "empty cgroups", func() bool {
		left := 0
		for _, dir := range made {
			if os.Remove(dir) != nil {
				if _, err := os.Lstat(dir); err == nil {
					left++
				}
			}
		}
		return left == 0
	})
	// One that is not there is an error, and no shim stays.
	dir := n.bundle("d", n.spec("d", "true"))
	if _, err := n.tryStart("d", dir); err == nil || !strings.Contains(err.Error(), "ShimCgroup") {
		t.Errorf("a cgroup that is not there: %v", err)
	}
}

func TestSchedCore(t *testing.T) {
	n := newNode(t)
	n.env = append(n.env, "SCHED_CORE=1")
	dir := n.bundle("c", n.spec("c", "sleep", "1000"))
	address, err := n.tryStart("c", dir)
	cookie := func(pid int) uint64 {
		c, err := coreCookie(pid)
		n.must(err)
		return c
	}
	n.must(err)
	b := &box{shim: n.connect(address), id: "c", dir: dir}
	n.must(b.create())
	n.must(b.begin(""))
	if _, here := coreCookie(os.Getpid()); here != nil {
		// No core scheduling in this kernel, or no core with two threads: it is done without.
		b.remove()
		b.gone()
		return
	}
	shim := cookie(b.shim.pid)
	if shim == 0 || shim == cookie(os.Getpid()) || shim != cookie(int(b.pid)) {
		t.Errorf("cookies: %x here, %x of the shim, %x of the container", cookie(os.Getpid()), shim, cookie(int(b.pid)))
	}
	b.remove()
	b.gone()
}

// coreCookie is the core scheduling cookie of a process, 0 for none.
func coreCookie(pid int) (cookie uint64, err error) {
	const ofProcess = 0 // PIDTYPE_PID
	err = unix.Prctl(unix.PR_SCHED_CORE, unix.PR_SCHED_CORE_GET, uintptr(pid), ofProcess, uintptr(unsafe.Pointer(&cookie)))
	return cookie, err
}

// A shim is to be OOM-killed before containerd, by one.
func TestOOMScore(t *testing.T) {
	n := newNode(t)
	b := n.define("c", n.spec("c", "true"))
	score := func(pid int) (score int) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
		n.must(err)
		fmt.Sscan(string(text), &score)
		return score
	}
	if got, want := score(b.shim.pid), min(score(os.Getpid())+1, 1000); got != want {
		t.Errorf("oom_score_adj %d, want %d", got, want)
	}
	b.shutdown()
	b.gone()
}

// SIGTERM ends the shim, and no container: containerd's delete does that.
func TestTerminated(t *testing.T) {
	n := newNode(t)
	b := n.run("c", "sleep", "1000")
	n.must(unix.Kill(b.shim.pid, unix.SIGTERM))
	b.gone()
	if !alive(b.pid) {
		t.Error("the container has ended with its shim")
	}
	n.cleanUp(b)
}
