package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	containers "github.com/containerd/containerd/api/services/containers/v1"
	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	"github.com/containerd/containerd/api/types"
	runcoptions "github.com/containerd/containerd/api/types/runc/options"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/berth-runtime/berth/test/containerd"
)

// withSetups runs a test with each daemon and the engines under the shim: the one
// that is linked in, and those that the shim executes. How the shim drives another
// engine does not depend on the daemon, so not each meets each.
func withSetups(t *testing.T, test func(*testing.T, *daemon, string)) {
	containerd.Each(t, func(t *testing.T, r containerd.Release) {
		for _, name := range []string{"linked", "runc", "crun"} {
			if name == "crun" && r.Modern {
				continue
			}
			t.Run(name, func(t *testing.T) {
				d := newDaemon(t, r)
				engine := name
				switch name {
				case "linked":
					engine = ""
				case "crun":
					engine = d.crun()
				default:
					lookFor(t, engine)
				}
				test(t, d, engine)
			})
		}
	})
}

// withReleases runs a test with the linked engine on each daemon.
func withReleases(t *testing.T, test func(*testing.T, *daemon), env ...string) {
	containerd.Each(t, func(t *testing.T, r containerd.Release) { test(t, newDaemon(t, r, env...)) })
}

// crun gives a crun that works here. It refuses a host with controllers on both
// versions of cgroups; so version 2 is hidden from it on such a one.
func (d *daemon) crun() string {
	path := lookFor(d.T, "crun")
	const unified = "/sys/fs/cgroup/unified"
	if _, err := os.Stat(unified); err != nil {
		return path
	}
	lookFor(d.T, "unshare")
	wrapper := filepath.Join(d.Dir, "crun")
	script := "#!/bin/sh\nexec unshare --mount sh -c 'umount " + unified + " && exec " + path + " \"$@\"' crun \"$@\"\n"
	if err := os.WriteFile(wrapper, []byte(script), 0o755); err != nil {
		d.T.Fatal(err)
	}
	return wrapper
}

var sequence atomic.Int32

// box is a container, and the stdio of its task.
type box struct {
	d       *daemon
	t       testing.TB
	id      string
	options *anypb.Any
	stdio   stdio
	pid     uint32
}

// change changes the spec of a container.
type change func(*specs.Spec)

func args(a ...string) change { return func(s *specs.Spec) { s.Process.Args = a } }

func sh(script string) change { return args("sh", "-c", script) }

func annotation(key, value string) change {
	return func(s *specs.Spec) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[key] = value
	}
}

func (d *daemon) spec(id string, changes []change) *specs.Spec {
	s := &specs.Spec{
		Version: "1.0.2",
		Process: &specs.Process{Cwd: "/", Env: []string{"PATH=/bin"}, Args: []string{"sleep", "1000"}, NoNewPrivileges: true},
		Root:    &specs.Root{Path: "rootfs"},
		Mounts: []specs.Mount{
			{Destination: "/proc", Type: "proc", Source: "proc"},
			{Destination: "/dev", Type: "tmpfs", Source: "tmpfs", Options: []string{"mode=755", "nosuid"}},
			{Destination: "/dev/pts", Type: "devpts", Source: "devpts", Options: []string{"newinstance", "ptmxmode=0666", "mode=0620"}},
		},
		Linux: &specs.Linux{
			CgroupsPath: d.Cgroup + "/" + id,
			Namespaces: []specs.LinuxNamespace{
				{Type: specs.PIDNamespace}, {Type: specs.MountNamespace}, {Type: specs.IPCNamespace}, {Type: specs.UTSNamespace},
			},
		},
	}
	for _, c := range changes {
		c(s)
	}
	return s
}

func any(t testing.TB, url string, v []byte) *anypb.Any {
	t.Helper()
	return &anypb.Any{TypeUrl: url, Value: v}
}

// options are those of runc's shim, by which a client chooses the engine.
func (d *daemon) options(engine string) *runcoptions.Options {
	return &runcoptions.Options{BinaryName: engine, Root: filepath.Join(d.Dir, "engine")}
}

// define makes a container without a task.
func (d *daemon) define(engine string, changes ...change) *box {
	d.T.Helper()
	return d.defineWith(d.options(engine), changes...)
}

func (d *daemon) defineWith(o *runcoptions.Options, changes ...change) *box {
	d.T.Helper()
	b, err := proto.Marshal(o)
	if err != nil {
		d.T.Fatal(err)
	}
	options := any(d.T, "containerd.runc.v1.Options", b)
	id := fmt.Sprintf("c%d", sequence.Add(1))
	text, err := json.Marshal(d.spec(id, changes))
	if err != nil {
		d.T.Fatal(err)
	}
	_, err = d.containers().Create(d.Context(), &containers.CreateContainerRequest{Container: &containers.Container{
		ID:      id,
		Runtime: &containers.Container_Runtime{Name: d.Shim, Options: options},
		Spec:    any(d.T, "types.containerd.io/opencontainers/runtime-spec/1/Spec", text),
	}})
	if err != nil {
		d.T.Fatal(err)
	}
	return &box{d: d, t: d.T, id: id, options: options}
}

// stdio are FIFOs, and what has come out of them.
type stdio struct {
	in, out, err string
	terminal     bool
	writer       *os.File
	output       [2]*collector
}

// collector reads a FIFO to its end.
type collector struct {
	mu   sync.Mutex
	b    bytes.Buffer
	done chan struct{}
}

func (c *collector) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.b.String()
}

// wait gives all that was written, when the shim has closed the FIFO.
func (c *collector) wait() string {
	<-c.done
	return c.String()
}

func collect(t testing.TB, path string) *collector {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	c := &collector{done: make(chan struct{})}
	go func() {
		defer close(c.done)
		f, err := os.Open(path) // until the shim opens it
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		buf := make([]byte, 4096)
		for {
			n, err := f.Read(buf)
			c.mu.Lock()
			c.b.Write(buf[:n])
			c.mu.Unlock()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	return c
}

// pipes makes FIFOs for a process; with a terminal there is no stderr.
func (d *daemon) pipes(name string, terminal bool) stdio {
	d.T.Helper()
	base := filepath.Join(d.Dir, fmt.Sprintf("f%d-%s", sequence.Add(1), name))
	s := stdio{in: base + "-in", out: base + "-out", terminal: terminal}
	if err := syscall.Mkfifo(s.in, 0o600); err != nil {
		d.T.Fatal(err)
	}
	// Not to be held up by the shim's opening, nor by its not reading.
	w, err := os.OpenFile(s.in, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		d.T.Fatal(err)
	}
	d.T.Cleanup(func() { w.Close() })
	s.writer = w
	s.output[0] = collect(d.T, s.out)
	if !terminal {
		s.err = base + "-err"
		s.output[1] = collect(d.T, s.err)
	}
	return s
}

func (d *daemon) rootfs() []*types.Mount {
	return []*types.Mount{{Type: "bind", Source: d.Root, Options: []string{"rbind", "ro"}}}
}

// create makes the task of a container.
func (b *box) create(s stdio) error {
	r, err := b.d.tasks().Create(b.d.Context(), &tasks.CreateTaskRequest{
		ContainerID: b.id, Rootfs: b.d.rootfs(), Options: b.options,
		Stdin: s.in, Stdout: s.out, Stderr: s.err, Terminal: s.terminal,
	})
	if err == nil {
		b.pid, b.stdio = r.Pid, s
	}
	return err
}

func (b *box) start() error {
	_, err := b.d.tasks().Start(b.d.Context(), &tasks.StartRequest{ContainerID: b.id})
	return err
}

// run defines, creates and starts a container.
func (d *daemon) run(engine string, changes ...change) *box {
	d.T.Helper()
	b := d.define(engine, changes...)
	if err := b.create(stdio{}); err != nil {
		d.T.Fatal(err)
	}
	if err := b.start(); err != nil {
		d.T.Fatal(err)
	}
	return b
}

func (b *box) wait(execID string) uint32 {
	b.t.Helper()
	r, err := b.d.tasks().Wait(b.d.Context(), &tasks.WaitRequest{ContainerID: b.id, ExecID: execID})
	if err != nil {
		b.t.Fatal(err)
	}
	return r.ExitStatus
}

func (b *box) kill(signal uint32) error {
	_, err := b.d.tasks().Kill(b.d.Context(), &tasks.KillRequest{ContainerID: b.id, Signal: signal})
	return err
}

// remove deletes the task, whatever state it is in, and the container.
func (b *box) remove() {
	b.t.Helper()
	b.kill(9)
	r, err := b.d.tasks().Get(b.d.Context(), &tasks.GetRequest{ContainerID: b.id})
	if err == nil {
		if r.Process.Status.String() != "CREATED" {
			b.wait("")
		}
		if _, err := b.d.tasks().Delete(b.d.Context(), &tasks.DeleteTaskRequest{ContainerID: b.id}); err != nil {
			b.t.Errorf("delete %s: %v", b.id, err)
		}
	}
	b.undefine()
}

func (b *box) undefine() {
	b.t.Helper()
	if _, err := b.d.containers().Delete(b.d.Context(), &containers.DeleteContainerRequest{ID: b.id}); err != nil {
		b.t.Errorf("delete container %s: %v", b.id, err)
	}
}

func (b *box) status() string {
	b.t.Helper()
	r, err := b.d.tasks().Get(b.d.Context(), &tasks.GetRequest{ContainerID: b.id})
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Process.Status.String()
}

// exec adds and starts a process.
func (b *box) exec(id string, s stdio, a ...string) error {
	b.t.Helper()
	process, err := json.Marshal(&specs.Process{Cwd: "/", Env: []string{"PATH=/bin"}, Args: a, NoNewPrivileges: true})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.d.tasks().Exec(b.d.Context(), &tasks.ExecProcessRequest{
		ContainerID: b.id, ExecID: id, Stdin: s.in, Stdout: s.out, Stderr: s.err, Terminal: s.terminal,
		Spec: any(b.t, "types.containerd.io/opencontainers/runtime-spec/1/Process", process),
	}); err != nil {
		return err
	}
	_, err = b.d.tasks().Start(b.d.Context(), &tasks.StartRequest{ContainerID: b.id, ExecID: id})
	return err
}

func (b *box) deleteExec(id string) (*tasks.DeleteResponse, error) {
	return b.d.tasks().DeleteProcess(b.d.Context(), &tasks.DeleteProcessRequest{ContainerID: b.id, ExecID: id})
}
