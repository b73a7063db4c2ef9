package harness

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Deadline is how long a test waits for anything at all. It only ends tests that hang: on a busy
// machine a command may take hundred times its usual time, and nothing is measured by it.
const Deadline = 60 * time.Second

// A Command is one call of the engine.
type Command struct {
	Box  *Box
	Args []string // after the global flags
	// Bare leaves the Box's global flags out.
	Bare bool
	// Binary is the engine under another name.
	Binary string
	// Wrap is put before the binary: strace and its flags.
	Wrap []string
	Dir  string
	Env  []string // additions
	// Stdin is the null device when nil. Stdout and Stderr are caught when nil. They are files, not
	// pipes: a container that outlives the command holds them, and the end of a pipe would never
	// come.
	Stdin, Stdout, Stderr *os.File
	Extra                 []*os.File // from descriptor 3 on
	Attr                  *syscall.SysProcAttr
}

// Result is how a call ended.
type Result struct {
	Args           []string
	Stdout, Stderr string
	// Code is the exit status, or -1 when a signal ended it.
	Code int
}

// Running is a call that has begun.
type Running struct {
	PID         int
	command     *Command
	cmd         *exec.Cmd
	out, errors *os.File
	ended       chan error
	waited      bool
}

// Command prepares a call of the engine.
func (b *Box) Command(args ...string) *Command { return &Command{Box: b, Args: args} }

// Berth calls the engine with the Box's global flags, and waits for its end.
func (b *Box) Berth(args ...string) Result {
	b.T.Helper()
	return b.Command(args...).Run()
}

// Run makes the call and waits for its end.
func (c *Command) Run() Result {
	c.Box.T.Helper()
	return c.Start().Wait()
}

// Start makes the call.
func (c *Command) Start() *Running {
	c.Box.T.Helper()
	b := c.Box
	if c.Binary == "" {
		c.Binary = Engine(b.T)
	}
	words := append(append(append([]string{}, b.Wrap...), c.Wrap...), c.Binary)
	if !c.Bare {
		words = append(words, b.Globals...)
	}
	words = append(words, c.Args...)
	r := &Running{command: c, ended: make(chan error, 1)}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.ExtraFiles, cmd.SysProcAttr = c.Dir, c.Extra, c.Attr
	cmd.Env = append(append(os.Environ(), mark+"="+b.Tag, "TMPDIR="+b.temp), c.Env...)
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	r.out, cmd.Stdout = b.catch(c.Stdout)
	r.errors, cmd.Stderr = b.catch(c.Stderr)
	r.cmd = cmd
	if err := cmd.Start(); err != nil {
		b.T.Fatalf("start %q: %v", words, err)
	}
	r.PID = cmd.Process.Pid
	go func() { r.ended <- cmd.Wait() }()
	b.T.Cleanup(r.abandon)
	return r
}

// catch returns a new file and itself where the caller wants no file of its own.
func (b *Box) catch(wanted *os.File) (caught, used *os.File) {
	b.T.Helper()
	if wanted != nil {
		return nil, wanted
	}
	// Appended to, since a container that has it as standard output and this process share one file
	// offset.
	f, err := os.OpenFile(filepath.Join(b.Dir, fmt.Sprintf("output-%d", b.outputs.Add(1))), os.O_RDWR|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	b.must(err)
	b.must(os.Remove(f.Name()))
	return f, f
}

// Signal sends a signal to the engine's process.
func (r *Running) Signal(s os.Signal) {
	r.command.Box.T.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.command.Box.T.Fatalf("signal %q: %v", r.cmd.Args, err)
	}
}

// Ended tells whether the call has come to its end, without waiting.
func (r *Running) Ended() bool { return len(r.ended) > 0 }

// Wait waits for the end of the call.
func (r *Running) Wait() Result {
	t := r.command.Box.T
	t.Helper()
	r.waited = true
	var err error
	select {
	case err = <-r.ended:
	case <-time.After(Deadline):
		r.cmd.Process.Kill()
		<-r.ended
		res := r.result()
		t.Fatalf("%q did not end within %s\nstdout: %s\nstderr: %s", r.cmd.Args, Deadline, res.Stdout, res.Stderr)
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("wait for %q: %v", r.cmd.Args, err)
	}
	return r.result()
}

func (r *Running) result() Result {
	return Result{Args: r.command.Args, Stdout: drain(r.out), Stderr: drain(r.errors), Code: r.cmd.ProcessState.ExitCode()}
}

// abandon ends a call that a failed test no longer waits for.
func (r *Running) abandon() {
	if !r.waited {
		r.cmd.Process.Kill()
		<-r.ended
	}
	for _, f := range []*os.File{r.out, r.errors} {
		if f != nil {
			f.Close()
		}
	}
}

// drain reads what was caught. The file is closed, not kept to the test's end: ten thousand rounds
// have more calls than a process has descriptors.
func drain(f *os.File) string {
	if f == nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<24))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// Lines are the lines of the standard output, without the last end of line.
func (r Result) Lines() []string {
	text := strings.TrimSuffix(r.Stdout, "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}
