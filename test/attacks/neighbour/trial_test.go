package neighbour

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
	"github.com/berth-runtime/berth/test/inside/view"
)

// A deed is an act that was done at a step.
type deed struct {
	act  act
	step step
	got  view.Attempt
}

func (d deed) String() string { return fmt.Sprintf("%s at step %s", d.act, d.step) }

// A trial is one container, with one command of its life made step by step and principals acting
// meanwhile.
type trial struct {
	s       *scene
	shape   shape
	command command
	// at chooses what is done at a step; nil for nothing.
	at func(step) *act
	// only is the one step that something is done at, "" for any: the others are not stopped at.
	only string

	spec    *specs.Spec
	born    map[string]string // the namespaces of the container
	payload int               // its first process
	reborn  bool              // that has left them by itself
	undo    *act
	deeds   []deed
	steps   []step
	broken  []string // what must not be, as found
	refused bool     // the command failed
	slow    time.Duration
}

// run makes the trial.
func (t *trial) run() {
	test, s := t.s.b.T, t.s
	test.Helper()
	switch {
	case t.command.byCriu():
		wholeProc.Lock()
		defer wholeProc.Unlock()
		defer harness.LimitCriu(test)()
	case t.shape.name == "mapped", t.shape.rootless:
		wholeProc.RLock()
		defer wholeProc.RUnlock()
	}
	s.fresh()
	if t.shape.rootless {
		t.handOver()
	}
	check(test, os.RemoveAll(s.b.Path("images")))
	t.spec = s.config(t.shape)
	s.target.Spec = t.spec
	a := newAgent(test)
	defer a.close()
	defer delete(s.agents, payload)
	switch t.command.needs {
	case absent:
	case written:
		t.write()
	default:
		t.prepare(a)
	}
	if t.command.needs == running {
		s.agents[payload] = a
	}
	r := t.step(a)
	t.took()
	t.complain(r)
	t.after(a, r)
	t.remove()
	for _, change := range s.canary.changes() {
		t.breaks("outside: " + change)
	}
}

func (t *trial) breaks(what string) {
	const most = 12
	if len(t.broken) < most {
		t.broken = append(t.broken, what)
	}
}

// engine prepares a call, by a caller who is in groups of the host's.
func (t *trial) engine(a *agent, verb string, flags, words []string) *harness.Command {
	pidFile := t.pidFile()
	begins := verb == "run" || verb == "create" || verb == "restore"
	if begins {
		_ = os.Remove(pidFile)
		flags = append([]string{"--pid-file", pidFile}, flags...)
	}
	cmd := t.call(verb, placeImages(flags, t.s.b.Path("images")), words...)
	cmd.Stdin, cmd.Stdout = a.stdin, nil
	if begins {
		cmd.Stdout = a.stdout
	}
	cmd.Attr = &syscall.SysProcAttr{Credential: &syscall.Credential{Groups: []uint32{0, 4, 27}}}
	return cmd
}

// prepare brings the container into the state that the command needs.
func (t *trial) prepare(a *agent) {
	test := t.s.b.T
	create := t.engine(a, "create", nil, nil)
	create.Env = t.environment()
	create.Run().OK(test)
	t.learn()
	if t.command.needs == created {
		return
	}
	t.engine(a, "start", nil, nil).Run().OK(test)
	check(test, a.ready())
	t.born = namespacesOf(t.payload)
	if t.command.needs == stopped {
		t.engine(a, "kill", nil, []string{"KILL"}).Run().OK(test)
		t.s.b.WaitGone(t.payload)
	}
}

func (t *trial) environment() []string {
	if t.command.notify {
		return []string{"NOTIFY_SOCKET=" + t.s.b.Path("nobody-listens")}
	}
	return nil
}

func (t *trial) pidFile() string { return filepath.Join(t.own(), "target.pid") }

// learn finds out which process is the container's first.
func (t *trial) learn() {
	if t.payload == 0 {
		t.payload, _ = strconv.Atoi(string(read(t.pidFile())))
		t.s.target.PID = t.payload
	}
}

// step makes the command.
func (t *trial) step(a *agent) harness.Result {
	cmd := t.engine(a, t.command.verb, t.command.flags, t.command.words)
	cmd.Env = t.environment()
	began := time.Now()
	first, next := harness.EachCall, harness.EachCall
	if t.only != "" {
		first, next = t.only, harness.ProgramsOnly
	}
	r := stepped(cmd, first, func(s step) string { t.act(s); return next }, t.executed)
	t.slow += time.Since(began)
	t.learn()
	t.undone()
	t.refused = r.Code != 0
	return r
}

// act lets a principal do what is to be done at a step, when what was done at the one before has
// been undone.
func (t *trial) act(s step) {
	t.steps = append(t.steps, s)
	began := time.Now()
	defer func() { t.slow -= time.Since(began) }()
	if t.undo != nil && !t.undo.once {
		t.undone()
	}
	a := t.at(s)
	if a == nil || t.s.agents[a.by] == nil || a.by == payload && t.standsStill() {
		return
	}
	d := deed{act: *a, step: s}
	// Also one that does not answer may have done it, when it goes on: it may be frozen just now.
	t.reborn = t.reborn || strings.HasPrefix(a.do, "become=")
	got, err := t.s.agents[a.by].do(a.do)
	if err != nil {
		t.lost(a.by, err)
		return
	}
	d.got = got
	t.deeds = append(t.deeds, d)
	t.judge(d)
	if a.undo != "" && got.Errno == "" {
		t.undo = a
	}
}

func (t *trial) undone() {
	if t.undo == nil {
		return
	}
	a := t.undo
	t.undo = nil
	if agent := t.s.agents[a.by]; agent != nil {
		if _, err := agent.do(a.undo); err != nil {
			t.lost(a.by, err)
		}
	}
}

// lost is about an agent that does not answer: the payload may be paused or dead, by the command.
func (t *trial) lost(by string, err error) {
	if by != payload {
		t.s.b.T.Fatalf("the agent of %s: %v, after %v", by, err, t.deeds)
	}
	delete(t.s.agents, payload)
}

// judge looks at what an act has found: nobody may trace or signal a process that has more rights
// than the container's.
func (t *trial) judge(d deed) {
	verb, _, _ := strings.Cut(d.act.do, "=")
	can := map[string]string{"reach": "trace", "forge": "trace", "signal": "signal"}[verb]
	if can == "" || d.act.by == payload && can == "signal" && d.act.do != "signal=0" {
		return // what is killed while it is made a process of the container is just not made
	}
	var found []view.Reached
	harness.Decode(t.s.b.T, d.got.Result, &found)
	if t.shape.name == hostPids { // who acts as the user of its number is no process of the container's, but seen by it
		found = slices.DeleteFunc(found, func(r view.Reached) bool { return r.PID == t.s.userPID })
	}
	may := rightsOf(t.spec, t.spec.Process)
	for _, r := range found {
		more := may.exceeded(r.Status)
		if can == "signal" { // of the same user, one who is made to have no more rights may be signalled before it is quite that
			more = slices.DeleteFunc(more, func(what string) bool { return !strings.HasPrefix(what, "capabilities Eff") })
		}
		if len(more) > 0 && r.Status["State"] != "Z (zombie)" {
			t.breaks(fmt.Sprintf("%s can %s %s, which has more than it: %s", d.act.by, can, r.Status["Name"], strings.Join(more, "; ")))
		}
	}
}

// executed looks at a process that executes something. No shape has a hook of the host's, and the
// engine needs no other program.
func (t *trial) executed(pid int, exe string) {
	began := time.Now()
	defer func() { t.slow -= time.Since(began) }()
	if t.isCriu(pid) {
		return
	}
	process := t.spec.Process
	if t.command.process != nil {
		process = t.command.process(t.spec)
	}
	for _, more := range t.examine(pid, rightsOf(t.spec, process), true) {
		t.breaks(fmt.Sprintf("%s was executed with %s", exe, more))
	}
}

// complain looks at how the command ended: what it refuses it says, in a line, and it never falls
// over.
func (t *trial) complain(r harness.Result) {
	switch {
	case strings.Contains(r.Stderr, "panic:") || strings.Contains(r.Stderr, "goroutine ") || r.Code == 2 || r.Code < 0:
		t.breaks(fmt.Sprintf("the engine fell over: status %d, %q", r.Code, r.Stderr[:min(len(r.Stderr), 300)]))
	case r.Code != 0 && len(r.Message()) < 12 && t.command.verb != "exec":
		t.breaks(fmt.Sprintf("status %d, and it says %q", r.Code, r.Stderr))
	}
}

// bound is what a command may take, acts not counted, whatever a payload does.
const bound = 20 * time.Second

func (t *trial) took() {
	if t.slow > bound {
		t.breaks(fmt.Sprintf("it took %s", t.slow.Round(time.Second)))
	}
}

// after looks at the container when the command has ended.
func (t *trial) after(a *agent, r harness.Result) {
	if r.Code != 0 && slices.Contains([]state{absent, created, written}, t.command.needs) {
		return
	}
	switch t.command.verb {
	case "create":
		if s := t.engine(a, "start", nil, nil).Run(); s.Code != 0 {
			t.refused = true
			return
		}
		fallthrough
	case "run", "start":
		if t.s.agents[payload] == a {
			break // it runs, and has said so
		}
		if a.ready() != nil {
			return // it has been given a program that is none
		}
		t.s.agents[payload] = a
	case "kill":
		if r.Code == 0 && slices.Contains(t.command.words, "KILL") {
			t.gone("kill KILL")
		}
	case "pause":
		t.call("resume", nil).Run()
	case "gc", "delete":
		return
	case "checkpoint":
		if r.Code == 0 && !slices.Contains(t.command.flags, "--leave-running") {
			t.gone("checkpoint")
			return
		}
	case "restore":
		a.resumed()
		t.s.agents[payload] = a
	}
	if t.payload > 0 && !t.reborn {
		for _, more := range t.examine(t.payload, rightsOf(t.spec, t.spec.Process), false) {
			t.breaks("the container runs with " + more)
		}
	}
	if a := t.s.agents[payload]; a != nil && !t.reborn {
		for _, more := range t.disk(a, t.spec) {
			t.breaks(more)
		}
	}
}

// gone sees to it that the container's first process has ended, with all of its threads.
func (t *trial) gone(after string) {
	fd, err := unix.PidfdOpen(t.payload, 0)
	if err != nil {
		return // it has been waited for
	}
	defer unix.Close(fd)
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(patience.Milliseconds())); n == 0 || err != nil {
		t.breaks("the container's process lives on after " + after)
	}
}

// remove takes the container away, and looks for what is left of it.
func (t *trial) remove() {
	s := t.s
	if r := t.call("delete", []string{"--force"}).Run(); r.Code != 0 {
		t.breaks("delete --force: " + r.Stderr)
		t.thaw()
		t.call("delete", []string{"--force"}).Run()
	}
	if t.payload > 0 {
		t.gone("delete --force")
		_ = unix.Kill(t.payload, unix.SIGKILL)
		s.b.WaitGone(t.payload)
		_, _ = unix.Wait4(t.payload, nil, 0, nil)
		s.target.PID = 0
	}
	if dir := filepath.Join(t.root(), s.target.ID); exists(dir) {
		t.breaks("the state folder is left")
		_ = os.RemoveAll(dir)
	}
	if t.spec.Linux.CgroupsPath == "" {
		return // it has no cgroup
	}
	for _, h := range s.hierarchies() {
		dir := filepath.Join(h.Dir, t.spec.Linux.CgroupsPath)
		if _, err := os.Stat(dir); err == nil {
			left := string(read(dir + "/cgroup.procs"))
			t.breaks(fmt.Sprintf("cgroup %s is left, with processes %q", dir, left))
			for _, word := range strings.Fields(left) {
				if pid, err := strconv.Atoi(word); err == nil {
					_ = unix.Kill(pid, unix.SIGKILL)
					s.b.WaitGone(pid)
				}
			}
			t.s.clear(dir)
		}
	}
}
