package ociexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/internal/sys"
	"github.com/berth-runtime/berth/shim/engine"
	"github.com/berth-runtime/berth/shim/reaper"
)

// Config says which runtime is driven, and how.
type Config struct {
	// Binary is a path, or a name to be found in PATH.
	Binary string
	// Root is where the runtime keeps its state.
	Root          string
	SystemdCgroup bool
}

// Runtime is an OCI runtime behind its command line.
type Runtime struct {
	config Config
	path   string
	reaper *reaper.Reaper
}

// New finds the runtime's binary.
func New(config Config, r *reaper.Reaper) (*Runtime, error) {
	path, err := reaper.LookPath(config.Binary)
	if err != nil {
		return nil, fmt.Errorf("option BinaryName: %w", err)
	}
	return &Runtime{config: config, path: path, reaper: r}, nil
}

// Create runs the runtime's create.
func (r *Runtime) Create(ctx context.Context, spec *engine.Create) (engine.Container, *engine.Process, error) {
	return r.make(ctx, spec, []string{"create"})
}

// Restore runs the runtime's restore.
func (r *Runtime) Restore(ctx context.Context, spec *engine.Create, from *engine.Restore) (engine.Container, *engine.Process, error) {
	args := []string{"restore", "--detach", "--image-path", from.Image}
	if from.Work != "" {
		args = append(args, "--work-path", from.Work)
	}
	if from.Parent != "" {
		args = append(args, "--parent-path", from.Parent)
	}
	return r.make(ctx, spec, args)
}

func (r *Runtime) make(ctx context.Context, spec *engine.Create, args []string) (engine.Container, *engine.Process, error) {
	pidFile := filepath.Join(spec.Bundle, "init.pid")
	args = append(args, "--bundle", spec.Bundle, "--pid-file", pidFile)
	if spec.NoPivotRoot {
		args = append(args, "--no-pivot")
	}
	if spec.NoNewKeyring && args[0] == "create" {
		args = append(args, "--no-new-keyring")
	}
	c := &container{runtime: r, id: spec.ID, bundle: spec.Bundle}
	p, err := r.spawn(ctx, spec.Bundle, args, spec.Stdio, pidFile, spec.ID)
	var half *halfMade
	if errors.As(err, &half) {
		err = errors.Join(half.err, c.Delete(context.WithoutCancel(ctx), true))
	}
	if err != nil {
		return nil, nil, err
	}
	return c, p, nil
}

// halfMade is the error of a command that has made its process, where something that came with it
// is missing: the process is there, and was not handed over.
type halfMade struct{ err error }

func (e *halfMade) Error() string { return e.err.Error() }
func (e *halfMade) Unwrap() error { return e.err }

// spawn runs a command that leaves a process behind, with the given stdio.
func (r *Runtime) spawn(ctx context.Context, bundle string, args []string, stdio engine.Stdio, pidFile, id string) (*engine.Process, error) {
	cmd := command{dir: bundle, stdio: [3]*os.File{stdio.In, stdio.Out, stdio.Err}}
	var console *consoleSocket
	if stdio.Terminal {
		var err error
		if console, err = newConsoleSocket(); err != nil {
			return nil, err
		}
		defer console.close()
		args = append(args, "--console-socket", console.path)
		cmd.stdio = [3]*os.File{}
	}
	cmd.args = append(args, id)
	if _, err := r.run(ctx, &cmd); err != nil {
		return nil, err
	}
	p := &engine.Process{}
	text, err := os.ReadFile(pidFile)
	if err == nil {
		p.Pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
	}
	if err != nil {
		return nil, &halfMade{fmt.Errorf("read the pid that the runtime wrote: %w", err)}
	}
	if console != nil {
		if p.Console, err = console.receive(); err != nil {
			// It is a child of ours, not yet reaped, so no one else has its number.
			unix.Kill(p.Pid, unix.SIGKILL)
			return nil, &halfMade{err}
		}
	}
	return p, nil
}

// Find gives a container that was made before.
func (r *Runtime) Find(id, bundle string) engine.Container {
	return &container{runtime: r, id: id, bundle: bundle}
}

// Remove runs delete --force.
func (r *Runtime) Remove(ctx context.Context, id string) error {
	dir, err := os.Getwd()
	if err != nil {
		dir = os.TempDir()
	}
	return (&container{runtime: r, id: id, bundle: dir}).Delete(ctx, true)
}

// Features runs the runtime's features command; a runtime that has none gives
// an error.
func (r *Runtime) Features(ctx context.Context) ([]byte, error) {
	return r.run(ctx, &command{dir: os.TempDir(), args: []string{"features"}, output: true})
}

// container is one container of a runtime.
type container struct {
	runtime *Runtime
	id      string
	bundle  string
}

// do runs a command that takes the container's id as its last argument.
func (c *container) do(ctx context.Context, args ...string) error {
	_, err := c.runtime.run(ctx, &command{dir: c.bundle, args: append(args, c.id)})
	return err
}

func (c *container) Start(ctx context.Context) error  { return c.do(ctx, "start") }
func (c *container) Pause(ctx context.Context) error  { return c.do(ctx, "pause") }
func (c *container) Resume(ctx context.Context) error { return c.do(ctx, "resume") }

func (c *container) Kill(ctx context.Context, sig syscall.Signal, all bool) error {
	args := []string{"kill"}
	if all {
		args = append(args, "--all")
	}
	_, err := c.runtime.run(ctx, &command{dir: c.bundle, args: append(args, c.id, strconv.Itoa(int(sig)))})
	return err
}

func (c *container) Delete(ctx context.Context, force bool) error {
	args := []string{"delete"}
	if force {
		args = append(args, "--force")
	}
	err := c.do(ctx, args...)
	if err == nil || errors.Is(err, engine.ErrNotFound) {
		return nil
	}
	// Runtimes word it differently, but all of them keep a directory for each container.
	if _, statErr := os.Lstat(filepath.Join(c.runtime.config.Root, c.id)); errors.Is(statErr, os.ErrNotExist) {
		return nil
	}
	return err
}

func (c *container) Update(ctx context.Context, resources []byte) error {
	in, err := sys.MemoryFile("resources", resources)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = c.runtime.run(ctx, &command{dir: c.bundle, args: []string{"update", "--resources", "-", c.id}, stdio: [3]*os.File{in}})
	return err
}

func (c *container) Pids(ctx context.Context) ([]int, error) {
	out, err := c.runtime.run(ctx, &command{dir: c.bundle, args: []string{"ps", "--format", "json", c.id}, output: true})
	if err != nil {
		return nil, err
	}
	var pids []int
	d := json.NewDecoder(out)
	if !d.Null() {
		for d.Array(); d.Next(); {
			pids = append(pids, int(d.Int(32)))
		}
	}
	if err := d.Close(); err != nil {
		return nil, fmt.Errorf("read the answer of ps: %w", err)
	}
	return pids, nil
}

func (c *container) Exec(ctx context.Context, spec *engine.Exec) (*engine.Process, error) {
	process, err := withTerminal(spec.Process, spec.Stdio.Terminal)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp(c.bundle, ".process-")
	if err != nil {
		return nil, fmt.Errorf("write the process of exec %s: %w", spec.ID, err)
	}
	defer os.Remove(file.Name())
	_, err = file.Write(process)
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("write the process of exec %s: %w", spec.ID, err)
	}
	args := []string{"exec", "--process", file.Name(), "--detach", "--pid-file", spec.PidFile}
	return c.runtime.spawn(ctx, c.bundle, args, spec.Stdio, spec.PidFile, c.id)
}

// FinishStart has nothing to do: a command that starts a container does not end with the shim.
func (c *container) FinishStart(context.Context) error { return nil }

// Rejoin is for engines that tell of a process before it executes its program: no command does.
func (c *container) Rejoin(context.Context, *engine.Exec, *engine.Process, engine.Held) error {
	return errors.ErrUnsupported
}

// withTerminal sets the terminal member of a process object, which clients
// leave to the request that carries the object.
func withTerminal(process []byte, terminal bool) ([]byte, error) {
	d := json.NewDecoder(process)
	out := []byte(`{"terminal":` + strconv.FormatBool(terminal))
	for d.Object(); d.Next(); {
		if key := d.Key(); key != "terminal" {
			out = append(json.AppendString(append(out, ','), key), ':')
			out = append(out, d.Raw()...)
		}
	}
	if err := d.Close(); err != nil {
		return nil, fmt.Errorf("process of an exec: %w", err)
	}
	return append(out, '}'), nil
}

func (c *container) Checkpoint(ctx context.Context, spec *engine.Checkpoint) error {
	args := []string{"checkpoint", "--image-path", spec.Image}
	for _, o := range []struct {
		flag  string
		value string
	}{{"--work-path", spec.Work}, {"--parent-path", spec.Parent}, {"--manage-cgroups-mode", spec.CgroupsMode}} {
		if o.value != "" {
			args = append(args, o.flag, o.value)
		}
	}
	for _, o := range []struct {
		flag string
		set  bool
	}{
		{"--leave-running", spec.LeaveRunning}, {"--tcp-established", spec.OpenTCP},
		{"--ext-unix-sk", spec.ExternalUnixSockets}, {"--shell-job", spec.Terminal}, {"--file-locks", spec.FileLocks},
	} {
		if o.set {
			args = append(args, o.flag)
		}
	}
	for _, ns := range spec.EmptyNamespaces {
		args = append(args, "--empty-ns", ns)
	}
	return c.do(ctx, args...)
}
