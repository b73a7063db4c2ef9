package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A worker is a process in a layout: it runs configs under all engines, one after another, and
// tells what came of them.
type worker struct {
	Layout          Layout
	Engines         []engine
	Session, Inside string
	Busybox         string

	dir  string // a tmpfs of its own
	runs int
	tag  string
	own  string // a cgroup that the worker itself is in
}

// A job is a config to run, and an outcome what came of it under one engine. For a job of commands,
// Lines are empty.
type job struct {
	Lines   []string
	Command []string
}

type outcome struct {
	Engine string
	Facts  facts
	Error  string // of the test itself
}

const workerVariable = "BERTH_DIFFERENTIAL_WORKER"

// work is the main program of a worker. It reads jobs and writes outcomes, a line each.
func work() error {
	var w worker
	if err := json.Unmarshal([]byte(os.Getenv(workerVariable)), &w); err != nil {
		return err
	}
	os.Unsetenv(workerVariable)
	if err := w.begin(); err != nil {
		return err
	}
	defer w.end()
	rows, err := readTable(tableText)
	if err != nil {
		return err
	}
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for in.More() {
		var j job
		if err := in.Decode(&j); err != nil {
			return err
		}
		var outcomes []outcome
		for _, e := range w.Engines {
			// Where several lines come together, crun is asked only of what its peer's facts leave
			// open.
			if e.Name == "crun" && len(j.Lines) > 1 && w.explained(rows, outcomes, j.Lines) {
				continue
			}
			o := outcome{Engine: e.Name}
			var err error
			if j.Command != nil {
				o.Facts, err = w.runCommand(e, j.Command)
			} else {
				o.Facts, err = w.runConfig(e, j.Lines)
			}
			if err != nil {
				o.Error = err.Error()
			}
			outcomes = append(outcomes, o)
		}
		if err := out.Encode(outcomes); err != nil {
			return err
		}
	}
	return nil
}

// explained tells whether the table names all that Berth does otherwise than runc, which was run as
// well.
func (w *worker) explained(rows []*row, outcomes []outcome, lines []string) bool {
	all := map[string]map[string]string{}
	for _, o := range outcomes {
		if o.Error != "" {
			return true // and reported
		}
		all[o.Engine] = o.Facts
	}
	if all["runc"] == nil {
		return false
	}
	return !slices.ContainsFunc(compare(all, w.Layout.Name, lines), func(d difference) bool {
		return !slices.ContainsFunc(rows, func(r *row) bool { return r.names(d) })
	})
}

// standardSignals gives every caller of an engine the dispositions that a shell's child has,
// whatever this one's caller is (nohup, or a shell's background): HUP and INT are the two that Go
// leaves ignored. One of a C library's internal signals is ignored always, as some callers have it,
// so that what engines do of it is the same wherever the test runs.
func standardSignals() error {
	for signal, handler := range map[unix.Signal]uintptr{unix.SIGHUP: 0, unix.SIGINT: 0, 32: 1} {
		action := [4]uintptr{handler} // a struct sigaction, which Go's own package refuses for signal 32
		if _, _, errno := unix.Syscall6(unix.SYS_RT_SIGACTION, uintptr(signal), uintptr(unsafe.Pointer(&action)), 0, 8, 0, 0); errno != 0 {
			return fmt.Errorf("sigaction of signal %d: %w", signal, errno)
		}
	}
	return nil
}

func (w *worker) begin() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := standardSignals(); err != nil {
		return err
	}
	if err := w.Layout.enter(); err != nil {
		return err
	}
	w.tag = fmt.Sprintf("bd%d", os.Getpid())
	w.dir = filepath.Join(w.Session, w.tag)
	// An earlier worker may have had the same number; what is mounted there is this one's own.
	if err := os.Mkdir(w.dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := unix.Mount("work", w.dir, "tmpfs", 0, "mode=755"); err != nil {
		return err
	}
	for name, source := range map[string]string{"inside": w.Inside, "busybox": w.Busybox} {
		data, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(w.dir, name), data, 0o755); err != nil {
			return err
		}
	}
	for i, e := range w.Engines {
		// The caches are root's own; an ordinary user can reach an engine here.
		shown := filepath.Join(w.dir, "engine-"+e.Name)
		if err := os.Mkdir(shown, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(filepath.Dir(e.Path), shown, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount on %s: %w", shown, err)
		}
		w.Engines[i].Path = filepath.Join(shown, filepath.Base(e.Path))
		if err := os.Mkdir(w.root(e), 0o711); err != nil {
			return err
		}
		if w.Layout.User == "rootless" {
			if err := os.Chown(w.root(e), ordinary, ordinary); err != nil {
				return err
			}
		}
	}
	w.own = "<no cgroup>"
	lines, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(lines)) {
		if path := strings.SplitN(strings.TrimSpace(line), ":", 3)[2]; path != "/" {
			w.own = path
		}
	}
	if w.Layout.User == "rootless" {
		return knowUser(w.dir)
	}
	return nil
}

func (w *worker) end() { unix.Unmount(w.dir, unix.MNT_DETACH) }

func (w *worker) root(e engine) string { return filepath.Join(w.dir, "root-"+e.Name) }

// command prepares a call of an engine as the layout's caller.
func (w *worker) command(e engine, callerIs []string, words ...string) *exec.Cmd {
	args := []string{e.Path, "--root", w.root(e)}
	if w.Layout.Systemd {
		args = append(args, "--systemd-cgroup")
	}
	args = append(args, words...)
	if len(callerIs) > 0 {
		args = append([]string{filepath.Join(w.dir, "inside"), "caller", strings.Join(callerIs, ",")}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/", "LANG=C.UTF-8"}
	if w.Layout.User == "rootless" {
		args := append([]string{filepath.Join(w.dir, "inside"), "as", fmt.Sprint(ordinary)}, args...)
		cmd.Path, cmd.Args = args[0], args
		cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+w.root(e))
	}
	return cmd
}
