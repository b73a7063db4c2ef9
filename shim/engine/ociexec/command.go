package ociexec

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/json"
	"github.com/berth-runtime/berth/shim/engine"
)

// command is one execution of the runtime.
type command struct {
	dir    string // where it runs, and where its log goes
	args   []string
	stdio  [3]*os.File // nil is /dev/null
	output bool        // give back what it writes to stdout
}

// logPattern names the logs of commands, one for each that is running. A log that
// is there without a shim belongs to a command that may still be at work.
const logPattern = ".runtime-log-"

// run executes the runtime and waits for it. It outlives the shim, for a runtime
// that is killed halfway leaves behind what its own delete does not find; see
// Settle.
func (r *Runtime) run(ctx context.Context, cmd *command) (output []byte, err error) {
	log, err := os.CreateTemp(cmd.dir, logPattern)
	if err != nil {
		return nil, fmt.Errorf("make a log for %s: %w", r.config.Binary, err)
	}
	defer os.Remove(log.Name())
	defer log.Close()

	argv := []string{r.config.Binary, "--root", r.config.Root, "--log", log.Name(), "--log-format", "json"}
	if r.config.SystemdCgroup {
		argv = append(argv, "--systemd-cgroup")
	}
	argv = append(argv, cmd.args...)

	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	files := make([]uintptr, 3)
	for i, f := range cmd.stdio {
		if f == nil {
			f = null
		}
		files[i] = f.Fd()
	}
	var out bytes.Buffer
	var read, write *os.File
	if cmd.output {
		if read, write, err = os.Pipe(); err != nil {
			return nil, fmt.Errorf("pipe for %s: %w", cmd.args[0], err)
		}
		defer read.Close()
		files[1] = write.Fd()
	}
	child, err := r.reaper.Start(r.path, argv, &syscall.ProcAttr{
		Dir: cmd.dir, Env: os.Environ(), Files: files,
	}, nil)
	if write != nil {
		write.Close()
	}
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { child.Signal(unix.SIGKILL) })
	defer stop()
	if read != nil {
		io.Copy(&out, read)
	}
	if exit := child.Wait(); exit.Status != 0 {
		return nil, r.failure(cmd.args[0], exit.Status, log, ctx.Err())
	}
	return out.Bytes(), nil
}

// failure is the error of a command: the last error that the runtime has logged,
// or what can be said without.
func (r *Runtime) failure(verb string, status int, log *os.File, cause error) error {
	text, _ := io.ReadAll(io.LimitReader(log, 1<<20))
	said := lastError(text)
	switch {
	case cause != nil:
		return fmt.Errorf("%s %s: stopped: %w", r.config.Binary, verb, cause)
	case said == "":
		return fmt.Errorf("%s %s: ended with status %d and logged no error", r.config.Binary, verb, status)
	}
	for _, k := range []struct {
		words string
		kind  error
	}{
		{"does not exist", engine.ErrNotFound},
		{"not paused", engine.ErrAlready},
		{"not running or created: paused", engine.ErrAlready},
		{"not running", engine.ErrNotRunning},
		{"process already finished", engine.ErrNotRunning},
		{"no such process", engine.ErrNotRunning},
		{"No such process", engine.ErrNotRunning},
	} {
		if strings.Contains(said, k.words) {
			return &runtimeError{text: said, kind: k.kind}
		}
	}
	return &runtimeError{text: said}
}

// runtimeError is the runtime's own sentence, for its users to read.
type runtimeError struct {
	text string
	kind error
}

func (e *runtimeError) Error() string { return e.text }
func (e *runtimeError) Unwrap() error { return e.kind }

func lastError(log []byte) string {
	last := ""
	for line := range bytes.Lines(log) {
		var level, msg string
		d := json.NewDecoder(line)
		for d.Object(); d.Next(); {
			switch d.Key() {
			case "level":
				level = d.String()
			case "msg":
				msg = d.String()
			}
		}
		if d.Close() == nil && (level == "error" || level == "fatal") {
			last = msg
		}
	}
	return last
}
