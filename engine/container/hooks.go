package container

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/berth-runtime/berth/engine/launch"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/internal/sys"
	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// createHooks runs what is due once the namespaces exist and before the root is
// pivoted, and moves the network devices in.
func (m *maker) createHooks() error {
	if err := m.moveNetDevices(); err != nil {
		return err
	}
	m.hooked = true
	h := &m.plan.Hooks
	state := m.hookState(specs.StateCreating, m.child.Pid)
	//lint:ignore SA1019 deprecated is not gone: clients write them
	if err := m.runHooks("prestart", h.Prestart, state, spawnHook); err != nil {
		return err
	}
	if err := m.runHooks("createRuntime", h.CreateRuntime, state, spawnHook); err != nil {
		return err
	}
	if len(h.CreateContainer) == 0 {
		return nil
	}
	pid, err := pidInside(m.child.Pid)
	if err != nil {
		return err
	}
	return m.runHooks("createContainer", h.CreateContainer, m.hookState(specs.StateCreating, pid), m.spawnInside)
}

// startHooks runs the startContainer hooks, in the container, as its process is: the
// program is the image's. One that names no environment has that of the process.
func (c *Container) startHooks(p *plan.Plan, env []string) error {
	hooks := slices.Clone(p.Hooks.StartContainer)
	for i := range hooks {
		if hooks[i].Env == nil {
			hooks[i].Env = env
		}
	}
	pid, err := pidInside(c.Pid)
	if err != nil {
		return err
	}
	return c.runHooks("startContainer", hooks, c.hookState(specs.StateCreated, pid), func(r *hookRun, stdio [3]uintptr) (*launch.Child, error) {
		return c.spawnAsProcess(r, p, stdio)
	})
}

// poststart runs the poststart hooks.
func (c *Container) poststart(h *specs.Hooks) error {
	return c.runHooks("poststart", h.Poststart, c.hookState(specs.StateRunning, c.Pid), spawnHook)
}

// A HookError is a hook that failed.
type HookError struct {
	At   string // its config entry
	Path string
	Err  error
}

func (e *HookError) Error() string {
	return "config.json: " + e.At + ": hook " + e.Path + ": " + e.Err.Error()
}

func (e *HookError) Unwrap() error { return e.Err }

// poststop runs the poststop hooks. The container is gone by then, so what
// fails is only told.
func (c *Container) poststop(h *specs.Hooks) {
	for i := range h.Poststop {
		if err := c.runHook("poststop", i, &h.Poststop[i], c.hookState(specs.StateStopped, 0), spawnHook); err != nil {
			c.runtime.warn("container %s: %v", c.ID, err)
		}
	}
}

func (c *Container) hookState(status specs.ContainerState, pid int) []byte {
	s := State{Record: c.Record, Status: status}
	s.Pid = pid
	return s.OCI()
}

// runHooks runs a list of hooks, in order, up to the first that fails.
func (c *Container) runHooks(kind string, hooks []specs.Hook, state []byte, spawn hookSpawner) error {
	for i := range hooks {
		if err := c.runHook(kind, i, &hooks[i], state, spawn); err != nil {
			return err
		}
	}
	return nil
}

func (c *Container) runHook(kind string, index int, h *specs.Hook, state []byte, spawn hookSpawner) error {
	at := "/hooks/" + kind + "/" + strconv.Itoa(index)
	defer c.runtime.Trace.Begin("run the hook " + at).End()
	run := hookRun{at: at, hook: h, state: state, dir: c.Bundle, watch: c.watchForEnd(), files: [2]string{c.Annotations[hookStdout], c.Annotations[hookStderr]}}
	if run.watch >= 0 {
		defer unix.Close(run.watch)
	}
	err := errEnded
	if kind == "poststop" || !c.has(endFile) { // these belong to the deletion
		err = run.run(spawn)
	}
	if err != nil {
		return &HookError{At: at, Path: h.Path, Err: err}
	}
	return nil
}

// hookRun is one hook being run.
type hookRun struct {
	at    string
	hook  *specs.Hook
	state []byte
	dir   string
	watch int // for a request to end it, see watchForEnd
	files [2]string
}

// Annotations that name files which the hooks' output is added to, as crun has them.
const (
	hookStdout = "run.oci.hooks.stdout"
	hookStderr = "run.oci.hooks.stderr"
)

// A hookSpawner starts a hook with these streams.
type hookSpawner func(r *hookRun, stdio [3]uintptr) (*launch.Child, error)

func (r *hookRun) run(spawn hookSpawner) error {
	stdin, err := sys.MemoryFD("state", r.state)
	if err != nil {
		return fmt.Errorf("prepare its standard input: %w", err)
	}
	defer unix.Close(stdin)
	output, err := outputFile()
	if err != nil {
		return err
	}
	defer unix.Close(output)
	stdio := [3]uintptr{uintptr(stdin), uintptr(output), uintptr(output)}
	for i, name := range r.files {
		if name == "" {
			continue
		}
		fd, err := unix.Open(name, unix.O_WRONLY|unix.O_APPEND|unix.O_CREAT|unix.O_CLOEXEC, 0o700)
		if err != nil {
			return fmt.Errorf("open %q for its output: %w", name, err)
		}
		defer unix.Close(fd)
		stdio[1+i] = uintptr(fd)
	}
	child, err := spawn(r, stdio)
	if err != nil {
		return err
	}
	if err := r.wait(child); err != nil {
		if said := tail(output); said != "" {
			return fmt.Errorf("%w: %s", err, said)
		}
		return err
	}
	return nil
}

// env is the hook's environment. One that names none has ours, as with runc and
// crun: hooks that are scripts rely on PATH.
func (r *hookRun) env() []string {
	if r.hook.Env == nil {
		return os.Environ()
	}
	return r.hook.Env
}

// argv is the hook's arguments; without any, the path stands for the name.
func (r *hookRun) argv() []string {
	if len(r.hook.Args) > 0 {
		return r.hook.Args
	}
	return []string{r.hook.Path}
}

// spawnHook starts the hook in our own namespaces. It may leave something that lasts.
func spawnHook(r *hookRun, stdio [3]uintptr) (*launch.Child, error) {
	pidfd := -1
	pid, err := entry.ForkExec(r.hook.Path, r.argv(), &syscall.ProcAttr{
		Dir: r.dir, Env: r.env(), Files: stdio[:],
		Sys: &syscall.SysProcAttr{PidFD: &pidfd, Setpgid: true},
	})
	if err != nil {
		return nil, err
	}
	return &launch.Child{Pid: pid, PidFD: pidfd}, nil
}

// longestTimeout is what poll(2) can wait for at most: an int of milliseconds.
const longestTimeout = math.MaxInt32 / 1000

// wait waits for the hook, for as long as its timeout allows or until it is asked to end.
func (r *hookRun) wait(child *launch.Child) error {
	var deadline time.Time
	if r.hook.Timeout != nil {
		deadline = time.Now().Add(time.Duration(min(*r.hook.Timeout, longestTimeout)) * time.Second)
	}
	// A descriptor that is -1 is passed over, see poll(2).
	fds := []unix.PollFd{{Fd: int32(child.PidFD), Events: unix.POLLIN}, {Fd: int32(r.watch), Events: unix.POLLIN}}
	for {
		left := -1
		if r.hook.Timeout != nil {
			left = max(0, int(time.Until(deadline).Milliseconds()))
		}
		n, err := unix.Poll(fds, left)
		if err == unix.EINTR {
			continue
		}
		if err == nil && n == 0 {
			r.kill(child)
			return fmt.Errorf("it did not end within its timeout of %d s and was killed", *r.hook.Timeout)
		}
		if err != nil || fds[0].Revents != 0 {
			break
		}
		if askedForEnd(r.watch) {
			r.kill(child)
			return fmt.Errorf("it was killed: %w", errEnded)
		}
	}
	status, err := child.Wait()
	switch {
	case err != nil:
		return err
	case status.Signaled():
		return fmt.Errorf("it was killed by %s", unix.SignalName(status.Signal()))
	case status.ExitStatus() != 0:
		return fmt.Errorf("it exited with %d", status.ExitStatus())
	}
	return nil
}

// kill ends the hook with what it has started.
func (r *hookRun) kill(child *launch.Child) {
	_ = unix.Kill(-child.Pid, unix.SIGKILL)
	child.Kill()
}

// outputFile takes what a hook says, for the error if it fails. A file and not
// a pipe: it need not be read, and whatever the hook leaves running may keep it.
func outputFile() (int, error) {
	fd, err := unix.MemfdCreate("hook-output", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, fmt.Errorf("prepare its output: %w", err)
	}
	return fd, nil
}

// tail returns the end of what a hook said, as one line.
func tail(fd int) string {
	const most = 512
	size, err := unix.Seek(fd, 0, io.SeekEnd)
	if err != nil || size == 0 {
		return ""
	}
	buf := make([]byte, most)
	n, err := unix.Pread(fd, buf, max(0, size-most))
	if err != nil {
		return ""
	}
	text := make([]byte, 0, n)
	for _, b := range buf[:n] {
		if b == '\n' || b == '\t' || b == '\r' {
			b = ' '
		}
		text = append(text, b)
	}
	for len(text) > 0 && text[len(text)-1] == ' ' {
		text = text[:len(text)-1]
	}
	return string(text)
}
