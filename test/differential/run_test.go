package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// deadline is for any one step; what takes longer hangs.
const deadline = 15 * time.Second

// patience is how many deadlines a step of the present job has. A container that is given little of
// the processors waits for all else that runs, which an engine can't help.
var patience atomic.Int32

func patienceFor(lines []string) int32 {
	if strings.Contains(strings.Join(lines, " "), "/linux/resources/cpu ") {
		return 6
	}
	return 1
}

func patient() time.Duration { return deadline * time.Duration(max(1, patience.Load())) }

// fragments are what containerd, CRI-O, Docker, Podman and Kubernetes look for in messages.
var fragments = []string{
	"container does not exist", "container not running", "already exists", "os: process already finished", "no such process",
	"executable file not found in $PATH", "no such file or directory", "permission denied", "is a directory", "not a directory", "operation not permitted",
	"cannot exec in a stopped container", "container not paused", "cannot start a container that has stopped", "cannot start an already running container",
}

// fragmentsOf are those in the error itself, not in warnings before it. crun begins some with a
// capital.
func fragmentsOf(message string) string {
	lines := strings.Split(strings.TrimSpace(message), "\n")
	text := lines[len(lines)-1]
	for _, line := range lines {
		if strings.Contains(line, "level=error") {
			text = line
		}
	}
	var found []string
	for _, f := range fragments {
		if strings.Contains(strings.ToLower(text), strings.ToLower(f)) {
			found = append(found, f)
		}
	}
	return strings.Join(found, ", ")
}

// call makes a call of an engine whose output is its own, and notes its exit status and what
// clients could find in its message.
func (w *worker) call(f facts, step string, cmd *exec.Cmd) (stdout string, ok bool) {
	var out, errors bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &errors
	}
	code := run(cmd)
	message := errors.String()
	if file, isFile := cmd.Stderr.(*os.File); isFile {
		data, _ := os.ReadFile(file.Name())
		message = string(data)
	}
	f[step+".code"] = code
	if code != "0" {
		f[step+".says"] = fragmentsOf(message)
		f["~"+step] = strings.TrimSpace(message) // shown, not compared
	}
	return out.String(), code == "0"
}

// run runs a command, and says how it ended: its status, or what kept it from ending.
func run(cmd *exec.Cmd) string {
	// An engine that is killed for hanging may leave children that hold its output.
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return err.Error()
	}
	hangs := false
	timer := time.AfterFunc(patient(), func() {
		hangs = true
		cmd.Process.Kill()
	})
	err := cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	switch {
	case hangs:
		return "hangs"
	case errors.As(err, &exit) || err == nil || errors.Is(err, exec.ErrWaitDelay): // a container may have its caller's output
		return strconv.Itoa(cmd.ProcessState.ExitCode())
	default:
		return err.Error()
	}
}

// runConfig runs the config that lines make under one engine, from create to delete, and notes all
// that is to be seen.
func (w *worker) runConfig(e engine, lines []string) (f facts, err error) {
	w.runs++
	f = facts{}
	patience.Store(patienceFor(lines))
	s, err := w.prepare(fmt.Sprintf("%s-%d", w.tag, w.runs), lines)
	defer w.clean(e, s)
	if err != nil {
		return f, err
	}
	n := w.normaliser(e, s)
	before := w.look(s)
	streams, err := w.streams(s)
	if err != nil {
		return f, err
	}
	defer streams.close()

	pidFile := filepath.Join(w.root(e), "pid")
	os.Remove(pidFile)
	words := append([]string{"create", "--bundle", s.dir, "--pid-file", pidFile}, s.options...)
	if s.terminal {
		words = append(words, "--console-socket", streams.socket)
	}
	create := w.command(e, s.caller, append(words, s.id)...)
	create.Stdin, create.Stdout, create.Stderr = streams.stdin, streams.stdout, streams.stderr
	_, created := w.call(f, "create", create)
	if !strings.Contains(strings.Join(lines, " "), "/process/") {
		delete(f, "create.says") // clients make exit codes of what is said of the program, not of mistakes in the config
	}
	streams.created(created)
	pid := 0
	if created {
		text, _ := os.ReadFile(pidFile)
		pid, _ = strconv.Atoi(string(text))
		f["pidfile"] = n.pid(string(text), pid)
		w.running(f, e, s, n, pid, streams)
	}
	w.hooks(f, s, n, pid)
	// What has ended is only to be taken notice of, which is the caller's part.
	for {
		if child, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != nil || child <= 0 {
			break
		}
	}
	now := w.look(s)
	f.differences("left", before, now)
	if f["start.code"] != "0" {
		for name := range f { // how far it came before it failed is nobody's business
			if strings.HasPrefix(name, "left file "+s.dir+"/") && !strings.HasPrefix(name, "left file "+s.dir+"/host/") {
				delete(f, name)
			}
		}
	}
	return n.all(f), nil
}

// running takes a created container through its life.
func (w *worker) running(f facts, e engine, s *setup, n *normaliser, pid int, streams *streams) {
	state := func(step string) {
		if out, ok := w.call(f, "state."+step, w.command(e, nil, "state", s.id)); ok {
			f.state("state."+step, out, pid)
		}
	}
	ended := reaped(pid)
	state("created")
	f.cgroups(pid, w.own)
	f.outside(pid)
	_, started := w.call(f, "start", w.command(e, nil, "start", s.id))
	if started {
		text, complete := streams.report()
		f["report"] = strconv.FormatBool(complete)
		f.report("", text, n)
		if complete {
			state("running")
			if out, ok := w.call(f, "exec", w.command(e, nil, "exec", s.id, "/inside", "report")); ok {
				f.report("exec.", out, n)
			}
			streams.end()
		} else {
			unix.Kill(pid, unix.SIGKILL) // one that a filter has half killed
		}
		f["exit"] = <-ended
		state("stopped")
	} else {
		state("unstarted")
	}
	words := []string{"delete", s.id}
	if !started {
		words = []string{"delete", "--force", s.id}
	}
	w.call(f, "delete", w.command(e, nil, words...))
	if !started {
		f["exit"] = <-ended
	}
}

// reaped takes the status of the container's first process as soon as it has ended, as conmon and
// shims do: engines that kill it wait for that.
func reaped(pid int) <-chan string {
	ended := make(chan string, 1)
	go func() { ended <- exitOf(pid) }()
	return ended
}

// exitOf waits for the end of the container's first process, whose parent this process has become.
func exitOf(pid int) string {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == nil {
		defer unix.Close(fd)
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for {
			count, err := unix.Poll(polled, int(4*patient().Milliseconds()))
			if errors.Is(err, unix.EINTR) {
				continue
			}
			if count == 0 {
				return "hangs"
			}
			break
		}
	}
	var status unix.WaitStatus
	if got, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); err != nil || got == 0 {
		return fmt.Sprint("not our child: ", err)
	}
	if status.Signaled() {
		return "signal " + unix.SignalName(status.Signal())
	}
	return strconv.Itoa(status.ExitStatus())
}

// clean takes away what is left, so that one run's leak is not the next one's difference.
func (w *worker) clean(e engine, s *setup) {
	killCgroups(s.id)
	// Whose parent ends becomes this process's child; and the first process of a PID namespace ends
	// only when those that were executed into it, and are children of this process, have been
	// waited for.
	for end := time.Now().Add(patient()); time.Now().Before(end); time.Sleep(time.Millisecond) {
		all := children()
		for _, child := range all {
			unix.Kill(child, unix.SIGKILL)
			unix.Wait4(child, nil, unix.WNOHANG, nil)
		}
		if len(all) == 0 {
			break
		}
	}
	run(w.command(e, nil, "delete", "--force", s.id))
	removeCgroups(s.id)
	for _, m := range slices.Backward(ownMounts()) {
		// A root that is shared lets what is mounted on a bind of the host's /proc reach that.
		if !s.found[m.ID] {
			unix.Unmount(m.Target, unix.MNT_DETACH)
		}
	}
	os.RemoveAll(s.dir)
	entries, _ := os.ReadDir(w.root(e))
	for _, entry := range entries {
		os.RemoveAll(filepath.Join(w.root(e), entry.Name()))
	}
}

// children are the processes that this one is the parent of, own or adopted.
func children() []int {
	var all []int
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// state notes what "state" printed.
func (f facts) state(step, text string, pid int) {
	var state map[string]any
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		f[step] = "no JSON: " + err.Error()
		return
	}
	if number, ok := state["pid"].(float64); ok && number != 0 {
		state["pid"] = "another process"
		if int(number) == pid {
			state["pid"] = "the container's"
		}
	}
	if created, ok := state["created"].(string); ok {
		if _, err := time.Parse(time.RFC3339Nano, created); err == nil {
			state["created"] = "a time"
		}
	}
	f.flatten(step, state)
}
