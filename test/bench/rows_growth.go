package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A growing is something that there may be more and more of on a host, and that is not the
// container's. It is made to be so many, in a view.
type growing struct {
	what   string
	counts []int
	grow   func(*load, int) error
}

var growings = []growing{
	{"mounts", []int{1, 1_000, 5_000}, (*load).mounts},
	{"cgroups", []int{1, 1_000, 10_000}, (*load).cgroups},
	{"processes", []int{1, 1_000, 10_000}, (*load).processes},
	{"containers", []int{1, 100, 1_000}, (*load).containers},
}

// growthRows measure run and exec beside more and more of what is not theirs, and then the
// commands that have to do with many.
func (b *bench) growthRows() error {
	v := b.views["v2"]
	if v == nil {
		v = b.pureView()
	}
	s := b.spec(plain, "/bin/true")
	s.Linux.Resources.Devices = nil // see runRows
	dir, err := b.bundle("growth", s)
	if err != nil {
		return err
	}
	s.Process.Args = []string{"/bin/sleep", "1000"}
	var failed error
	v.do(func() {
		for _, g := range growings {
			l := &load{b: b}
			for _, n := range g.counts {
				if failed = g.grow(l, n); failed == nil && !b.stopped.Load() {
					failed = b.growthRow(v, g.what, n, dir)
				}
				if failed != nil {
					break
				}
			}
			if failed = errors.Join(failed, l.end()); failed != nil {
				failed = fmt.Errorf("%s: %w", g.what, failed)
				return
			}
		}
		failed = b.manyRows(v)
	})
	return failed
}

func (b *bench) growthRow(v *view, what string, n int, dir string) error {
	run := &Row{Group: "growth", Name: fmt.Sprintf("run, beside %d %s, cgroup %s", n, what, v.words), Unit: "ms", Axis: what, At: float64(n)}
	exec := &Row{Group: "growth", Name: fmt.Sprintf("exec, beside %d %s, cgroup %s", n, what, v.words), Unit: "ms", Axis: what, At: float64(n)}
	// Of a host with both versions our view is no true likeness: /proc/self/cgroup names
	// hierarchies that are not mounted in it, for which Berth reads the table of all mounts.
	if what == "mounts" && n == 5_000 && b.views["host"] == nil {
		exec.target(0.4, 0)
	}
	var runs, execs []contender
	for _, e := range b.enginesIn(v) {
		runs = append(runs, contender{e.name, func() (sample, error) { return b.time(e.command("run", "--bundle", dir, b.id())) }})
		o, err := b.sleeper(e, "growth-"+e.name)
		if err != nil {
			execs = append(execs, contender{e.name, func() (sample, error) { return sample{}, err }})
			continue
		}
		defer o.end()
		execs = append(execs, contender{e.name, func() (sample, error) { return b.time(e.command("exec", o.id, "/bin/true")) }})
	}
	rounds := b.rounds
	b.rounds = min(rounds, 2*burst)
	b.bursts(run, runs)
	b.bursts(exec, execs)
	b.rounds = rounds
	return nil
}

// A sleeper is a container that does nothing.
type sleeper struct {
	b           *bench
	engine      engine
	id, pidFile string
}

// sleeper starts one. It is to be called in a view.
func (b *bench) sleeper(e engine, name string, args ...string) (*sleeper, error) {
	if len(args) == 0 {
		args = []string{"/bin/sleep", "1000"}
	}
	s := b.spec(plain, args...)
	s.Linux.Resources.Devices = nil
	dir, err := b.bundle(name, s)
	if err != nil {
		return nil, err
	}
	o := &sleeper{b: b, engine: e, id: b.id()}
	o.pidFile = filepath.Join(b.dir, o.id+".pid")
	_, err = b.time(e.command("run", "--detach", "--bundle", dir, "--pid-file", o.pidFile, o.id))
	return o, err
}

func (o *sleeper) end() {
	_, _ = o.b.time(o.engine.command("delete", "--force", o.id))
	_ = waitFor(o.pidFile)
	_ = os.Remove(o.pidFile)
}

// load is what has been made to be many.
type load struct {
	b     *bench
	dirs  []string
	tree  string // a mount with many below it
	procs []*os.Process
	made  []*sleeper
}

func (l *load) mounts(n int) error {
	if l.tree == "" {
		dir := filepath.Join(l.b.dir, "mounts")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
			return err
		}
		l.tree = dir
	}
	for i := len(l.dirs); i < n; i++ {
		dir := filepath.Join(l.tree, strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
			return err
		}
		l.dirs = append(l.dirs, dir)
	}
	return nil
}

func (l *load) cgroups(n int) error {
	dirs, _ := mounted()
	for i := len(l.dirs); i < n; i++ {
		for _, dir := range dirs {
			at := filepath.Join(dir, l.b.cgroup, fmt.Sprintf("many%d", i))
			if err := unix.Mkdir(at, 0o755); err != nil {
				return err
			}
		}
		l.dirs = append(l.dirs, fmt.Sprintf("many%d", i))
	}
	return nil
}

func (l *load) processes(n int) error {
	for len(l.procs) < n {
		words := []string{filepath.Join(l.b.root(), "bin/busybox"), "sleep", "1000"}
		p, err := os.StartProcess(words[0], words, &os.ProcAttr{Files: []*os.File{l.b.null, l.b.null, l.b.null}})
		if err != nil {
			return err
		}
		l.procs = append(l.procs, p)
	}
	return nil
}

func (l *load) containers(n int) error {
	for len(l.made) < n {
		o, err := l.b.sleeper(l.b.engines[0], fmt.Sprintf("many-%d", len(l.made)))
		if err != nil {
			return err
		}
		l.made = append(l.made, o)
	}
	return nil
}

// end removes what was made.
func (l *load) end() error {
	if l.tree != "" {
		return unix.Unmount(l.tree, unix.MNT_DETACH)
	}
	for _, p := range l.procs {
		_ = p.Kill()
	}
	for _, p := range l.procs {
		_, _ = p.Wait()
	}
	for _, o := range l.made {
		o.end()
	}
	dirs, _ := mounted()
	for _, name := range l.dirs {
		for _, dir := range dirs {
			_ = unix.Rmdir(filepath.Join(dir, l.b.cgroup, name))
		}
	}
	return nil
}

// manyRows measure the commands that look at many containers, or at one of many processes.
func (b *bench) manyRows(v *view) error {
	const containers, processes = 1_000, 10_000
	list := &Row{Group: "growth", Name: fmt.Sprintf("list with %d containers, cgroup %s", containers, v.words), Unit: "ms"}
	top := &Row{Group: "growth", Name: fmt.Sprintf("top with %d containers, two looks (aim: 300), cgroup %s", containers, v.words), Unit: "ms of CPU"}
	kill := &Row{Group: "growth", Name: fmt.Sprintf("kill --all of %d processes, cgroup %s", processes, v.words), Unit: "ms"}
	list.target(1, 0)
	kill.target(1, 0)
	for _, e := range b.enginesIn(v) {
		if e.name == "runc" { // it would take minutes to make them
			continue
		}
		var listed, looked, killed []sample
		var failed error
		l := &load{b: b}
		for i := 0; i < containers && failed == nil && !b.stopped.Load(); i++ {
			var o *sleeper
			if o, failed = b.sleeper(e, fmt.Sprintf("many-%d", i)); failed == nil {
				l.made = append(l.made, o)
			}
		}
		for range 5 {
			if failed != nil {
				break
			}
			var s sample
			if s, failed = b.time(e.command("list", "--quiet")); failed == nil {
				listed = append(listed, s)
			}
			if e.name == ours && failed == nil {
				if s, failed = b.time(e.command("top", "-n", "1", "--json")); failed == nil {
					s.value = s.cpu // the looks are a second apart
					looked = append(looked, s)
				}
			}
		}
		failed = errors.Join(failed, l.end())
		var killing error
		for range 3 {
			if killing != nil || b.stopped.Load() {
				break
			}
			var s sample
			if s, killing = b.killAll(e, processes); killing == nil {
				killed = append(killed, s)
			}
		}
		if err := errors.Join(failed, killing); err != nil {
			progress("many: %s: %v", e.name, err)
		}
		list.Cells = append(list.Cells, cellOf(e.name, listed, failed))
		kill.Cells = append(kill.Cells, cellOf(e.name, killed, killing))
		if e.name == ours {
			top.Cells = append(top.Cells, cellOf(e.name, looked, failed))
		}
	}
	for _, row := range []*Row{list, top, kill} {
		b.report.add(row)
	}
	return nil
}

// killAll measures the end of a container of many processes.
func (b *bench) killAll(e engine, n int) (sample, error) {
	forks := fmt.Sprintf("i=1; while [ $i -lt %d ]; do sleep 1000 & i=$((i+1)); done; wait", n)
	o, err := b.sleeper(e, "kill-"+e.name, "/bin/sh", "-c", forks)
	if err != nil {
		return sample{}, err
	}
	defer o.end()
	dirs, _ := mounted()
	procs := filepath.Join(dirs[0], b.cgroup, "kill-"+e.name, "cgroup.procs")
	for until := time.Now().Add(3 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(procs)
		if err == nil && strings.Count(string(text), "\n") >= n {
			break
		}
		if time.Now().After(until) {
			return sample{}, fmt.Errorf("the container has not forked %d times in three minutes", n)
		}
	}
	return b.time(e.command("kill", "--all", o.id, "KILL"))
}
