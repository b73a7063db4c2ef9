package harness

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/inside/view"
)

// A Container is a bundle and what became of it. Change Spec before the first call.
type Container struct {
	Box  *Box
	ID   string
	Dir  string // the bundle
	Spec *specs.Spec
	// PID is the container's first process, once it was created or run in the background.
	PID int
	// The container's standard streams, for Create and RunDetached; without them the null device
	// and files nobody reads.
	Stdin, Stdout, Stderr *os.File
	// Extra are descriptors from 3 on, for every call.
	Extra []*os.File
	// Env is added to the environment of every call.
	Env []string

	foreign, touched bool
}

// Container makes a bundle with a root file system and the default config, to run args.
func (b *Box) Container(args ...string) *Container {
	b.T.Helper()
	b.containers++
	id := fmt.Sprintf("%s-%d", b.Tag, b.containers)
	c := &Container{Box: b, ID: id, Dir: b.Path(fmt.Sprintf("bundle-%d", b.containers)), Spec: DefaultSpec("/"+id, args...)}
	b.must(os.Mkdir(c.Dir, 0o755))
	b.must(os.Mkdir(c.Rootfs(), 0o755))
	MakeRootfs(b.T, c.Rootfs())
	b.T.Cleanup(c.end)
	return c
}

// Rootfs is the directory of the root file system.
func (c *Container) Rootfs() string { return filepath.Join(c.Dir, "rootfs") }

// Path is the host's name of a path in the container's root file system.
func (c *Container) Path(name string) string { return filepath.Join(c.Rootfs(), name) }

// WriteFile puts a file into the root file system.
func (c *Container) WriteFile(name, content string, mode os.FileMode) {
	c.Box.T.Helper()
	path := c.Path(name)
	c.Box.must(os.MkdirAll(filepath.Dir(path), 0o755))
	c.Box.must(os.WriteFile(path, []byte(content), mode))
	c.Box.must(os.Chmod(path, mode))
}

// Write puts the config into the bundle. Create and run do it too.
func (c *Container) Write() {
	c.Box.T.Helper()
	data, err := json.MarshalIndent(c.Spec, "", "  ")
	c.Box.must(err)
	c.Box.must(os.WriteFile(filepath.Join(c.Dir, "config.json"), data, 0o644))
}

// WriteConfig puts any text into the bundle as config.json, for good: Spec is no longer written.
func (c *Container) WriteConfig(text string) {
	c.Box.T.Helper()
	c.Box.must(os.WriteFile(filepath.Join(c.Dir, "config.json"), []byte(text), 0o644))
	c.foreign = true
}

// Command prepares "VERB flags… ID words…" for the container.
func (c *Container) Command(verb string, flags []string, words ...string) *Command {
	c.Box.T.Helper()
	c.touched = true
	args := append([]string{verb}, flags...)
	if verb == "run" || verb == "create" || verb == "restore" {
		if !c.foreign {
			c.Write()
		}
		args = append(args, "--bundle", c.Dir)
	}
	cmd := c.Box.Command(append(append(args, c.ID), words...)...)
	cmd.Extra, cmd.Env = c.Extra, c.Env
	return cmd
}

// Run runs the container in the foreground, to its end.
func (c *Container) Run(flags ...string) Result {
	c.Box.T.Helper()
	cmd := c.Command("run", flags)
	cmd.Stdin = c.Stdin
	return cmd.Run()
}

// TryCreate calls create, which may fail.
func (c *Container) TryCreate(flags ...string) Result {
	c.Box.T.Helper()
	return c.background("create", flags)
}

// Create creates the container, and learns its pid.
func (c *Container) Create(flags ...string) *Container {
	c.Box.T.Helper()
	c.TryCreate(flags...).OK(c.Box.T)
	return c
}

// RunDetached runs the container in the background, and learns its pid.
func (c *Container) RunDetached(flags ...string) *Container {
	c.Box.T.Helper()
	c.TryRunDetached(flags...).OK(c.Box.T)
	return c
}

// TryRunDetached calls run --detach, which may fail.
func (c *Container) TryRunDetached(flags ...string) Result {
	c.Box.T.Helper()
	return c.background("run", append([]string{"--detach"}, flags...))
}

func (c *Container) background(verb string, flags []string) Result {
	c.Box.T.Helper()
	pidFile := c.Box.Path(c.ID + ".pid")
	cmd := c.Command(verb, append([]string{"--pid-file", pidFile}, flags...))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	r := cmd.Run()
	if data, err := os.ReadFile(pidFile); err == nil && r.Code == 0 {
		c.PID, err = strconv.Atoi(string(data))
		c.Box.must(err)
	}
	return r
}

// Start starts a created container.
func (c *Container) Start() *Container {
	c.Box.T.Helper()
	c.Command("start", nil).Run().OK(c.Box.T)
	return c
}

// Kill sends a signal.
func (c *Container) Kill(signal string) *Container {
	c.Box.T.Helper()
	c.Command("kill", nil, signal).Run().OK(c.Box.T)
	return c
}

// Delete deletes the container.
func (c *Container) Delete(flags ...string) {
	c.Box.T.Helper()
	c.Command("delete", flags).Run().OK(c.Box.T)
}

// Exec runs one more process in the container, to its end.
func (c *Container) Exec(flags []string, args ...string) Result {
	c.Box.T.Helper()
	return c.Command("exec", flags, args...).Run()
}

// State is what the state command prints, with the engines' additions to the spec's fields.
type State struct {
	specs.State
	Rootfs  string `json:"rootfs"`
	Created string `json:"created"`
	Owner   string `json:"owner"`
}

// State asks for the container's state.
func (c *Container) State() State {
	c.Box.T.Helper()
	var s State
	Decode(c.Box.T, c.Command("state", nil).Run().OK(c.Box.T).Stdout, &s)
	return s
}

// WaitExit waits for the end of the container's first process, which is this process's child, and
// takes its status.
func (c *Container) WaitExit() unix.WaitStatus {
	c.Box.T.Helper()
	if c.PID == 0 {
		c.Box.T.Fatal("the container has no process to wait for")
	}
	status, err := reap(c.PID)
	if err != nil {
		c.Box.T.Fatalf("wait for the container's process %d: %v", c.PID, err)
	}
	c.PID = 0
	return status
}

// WaitExitOfTraced is WaitExit for a container in which added processes are traced. Whoever gives
// such a one up leaves it to its next parent, which is this process here, as it is the init of a
// host: the container's first process ends after it.
func (c *Container) WaitExitOfTraced() unix.WaitStatus {
	c.Box.T.Helper()
	for end := time.Now().Add(Deadline); time.Now().Before(end) && waitGone(c.PID, 10*time.Millisecond) != nil; {
		for _, pid := range c.Box.newPIDs() {
			if parent, _ := Parent(pid); parent == os.Getpid() && pid != c.PID {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
		}
	}
	return c.WaitExit()
}

// Look runs the container with the helper as its process, and returns what that sees.
func (c *Container) Look(paths ...string) *view.View {
	c.Box.T.Helper()
	c.Spec.Process.Args = append([]string{"/inside", "look"}, paths...)
	return ParseView(c.Box.T, c.Run().OK(c.Box.T).Stdout)
}

// Try runs the container with the helper as its process, to try things.
func (c *Container) Try(words ...string) map[string]view.Attempt {
	c.Box.T.Helper()
	c.Spec.Process.Args = append([]string{"/inside", "try"}, words...)
	return ParseAttempts(c.Box.T, c.Run().OK(c.Box.T).Stdout)
}

// end removes what the test itself did not.
func (c *Container) end() {
	if !c.touched {
		return
	}
	if r := c.Command("delete", []string{"--force"}).Run(); r.Code != 0 {
		c.Box.T.Errorf("delete --force at the end of the test: %s", r.Stderr)
	}
	if c.PID != 0 {
		unix.Kill(c.PID, unix.SIGKILL)
		if _, err := reap(c.PID); err != nil && !errors.Is(err, unix.ECHILD) {
			c.Box.T.Errorf("wait for the container's process %d: %v", c.PID, err)
		}
	}
}

// Decode reads JSON or fails the test.
func Decode(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.NewDecoder(strings.NewReader(text)).Decode(into); err != nil {
		t.Fatalf("not the JSON that was expected: %v\n%s", err, text)
	}
}
