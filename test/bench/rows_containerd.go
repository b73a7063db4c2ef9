package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// containerdRows measure the shims, below a containerd in a pure view.
func (b *bench) containerdRows() error {
	v := b.pureView()
	runtimes := []runtimeOf{{name: ours, shim: b.shims}}
	if _, err := os.Stat(b.shims); err != nil {
		return fmt.Errorf("%w (make build)", err)
	}
	const peer = "containerd-shim-runc-v2"
	if _, err := exec.LookPath(peer); err != nil {
		return err
	}
	for _, e := range b.engines {
		if e.name != ours {
			path, err := e.program(b.dir)
			if err != nil {
				return err
			}
			runtimes = append(runtimes, runtimeOf{name: e.name, shim: "io.containerd.runc.v2", engine: path})
		}
	}
	var d *daemon
	var err error
	v.do(func() { d, err = b.startDaemon() })
	if err != nil {
		return err
	}
	defer d.stop()
	if err := b.lifeRows(d, v, runtimes); err != nil {
		return err
	}
	b.idleShims(d, runtimes, 1)
	b.idleShims(d, runtimes, 20)
	b.startsPerSecond(d, v, runtimes, 50, min(b.rounds, 5))
	b.startsPerSecond(d, v, runtimes, 200, min(b.rounds, 2))
	return b.shimStart(d, v, runtimes)
}

// lifeRows measure the life of a container call by call, and through ctr.
func (b *bench) lifeRows(d *daemon, v *view, runtimes []runtimeOf) error {
	const total = 4
	names := [...]string{"NewTask", "Start", "Wait", "Delete", "create to delete", "exec, to its end and deleted"}
	samples := make([][len(names)][]sample, len(runtimes))
	failed := make([]error, len(runtimes))
	for round := range b.rounds {
		for i := range runtimes {
			at := (i + round) % len(runtimes)
			if failed[at] != nil || b.stopped.Load() {
				continue
			}
			time.Sleep(b.pause)
			times, err := d.life(runtimes[at], v.kind())
			if err != nil {
				failed[at] = err
				progress("containerd: %s: %v", runtimes[at].name, err)
				continue
			}
			for n, t := range times {
				samples[at][n] = append(samples[at][n], sample{value: milliseconds(t)})
			}
		}
	}
	for n, name := range names {
		row := &Row{Group: "containerd", Name: fmt.Sprintf("%s, %s", name, v.kind()), Unit: "ms"}
		if n == total {
			row.target(0.35, 0.25)
		}
		for i, r := range runtimes {
			row.Cells = append(row.Cells, cellOf(r.name, samples[i][n], failed[i]))
		}
		b.report.add(row)
	}
	ctr, err := exec.LookPath("ctr")
	if err != nil {
		return err
	}
	dir, err := b.bundle("ctr", b.spec(v.kind(), "/bin/true"))
	if err != nil {
		return err
	}
	var contenders []contender
	for _, r := range runtimes {
		contenders = append(contenders, contender{r.name, func() (sample, error) {
			words := []string{ctr, "--address", d.socket(), "--namespace", ctrNamespace, "run", "--rm", "--null-io", "--runtime", r.shim}
			if r.engine != "" {
				words = append(words, "--runc-binary", r.engine, "--runc-root", filepath.Join(d.dir, "engine"))
			}
			return b.time(append(words, "--config", filepath.Join(dir, "config.json"), b.id()))
		}})
	}
	b.turns(&Row{Group: "containerd", Name: fmt.Sprintf("ctr run --rm, %s", v.kind()), Unit: "ms"}, b.pause, contenders)
	return nil
}

// life is a container from NewTask to Delete, and one that is added a process to.
func (d *daemon) life(r runtimeOf, k kind) ([]time.Duration, error) {
	c, err := d.define(r, d.b.spec(k, "/bin/true"))
	if err != nil {
		return nil, err
	}
	var times []time.Duration
	begun := time.Now()
	last := begun
	for _, step := range []func() error{c.create, c.start, c.wait, c.delete} {
		if err := step(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(last))
		last = time.Now()
	}
	times = append(times, last.Sub(begun))
	if err := c.undefine(); err != nil {
		return nil, err
	}
	if c, err = d.run(r, k); err != nil {
		return nil, err
	}
	begun = time.Now()
	err = c.exec("/bin/true")
	times = append(times, time.Since(begun))
	return times, errors.Join(err, c.end())
}

// run starts a container that stays.
func (d *daemon) run(r runtimeOf, k kind) (*box, error) {
	c, err := d.define(r, d.b.spec(k, "/bin/sleep", "1000"))
	if err != nil {
		return nil, err
	}
	if err := c.create(); err != nil {
		return nil, err
	}
	return c, c.start()
}

// untilIdle is how long shims have had nothing to do when they are looked at. One
// that has just started a container still has in memory what that took.
const untilIdle = 5 * time.Second

// idleShims looks at the first of n shims, each with one running container. What
// they share, such as the program's text, counts in part.
func (b *bench) idleShims(d *daemon, runtimes []runtimeOf, n int) {
	rss := &Row{Group: "containerd", Name: fmt.Sprintf("idle shim, one of %d, RSS", n), Unit: "KiB"}
	pss := &Row{Group: "containerd", Name: fmt.Sprintf("idle shim, one of %d, PSS", n), Unit: "KiB"}
	pss.target(0.5, 0.5)
	for _, r := range runtimes {
		var resident, share float64
		var boxes []*box
		var err error
		for range n {
			var c *box
			if c, err = d.run(r, plain); err != nil {
				break
			}
			boxes = append(boxes, c)
		}
		if err == nil {
			time.Sleep(untilIdle)
			var shim int
			if shim, err = parentOf(boxes[0].pid); err == nil {
				if resident, err = kilobytes(shim, "smaps_rollup", "Rss:"); err == nil {
					share, err = kilobytes(shim, "smaps_rollup", "Pss:")
				}
			}
		}
		err = errors.Join(err, forAll(boxes, (*box).end))
		rss.Cells = append(rss.Cells, cellOf(r.name, []sample{{value: resident}}, err))
		pss.Cells = append(pss.Cells, cellOf(r.name, []sample{{value: share}}, err))
	}
	b.report.add(rss)
	b.report.add(pss)
}

func parentOf(pid int) (int, error) {
	text := fieldOf(filepath.Join("/proc", strconv.Itoa(pid), "status"), "PPid")
	return strconv.Atoi(text)
}

// startsPerSecond creates and starts n containers at once.
func (b *bench) startsPerSecond(d *daemon, v *view, runtimes []runtimeOf, n, rounds int) {
	row := &Row{Group: "containerd", Name: fmt.Sprintf("starts per second, %d at once, %s", n, v.kind()), Unit: "1/s", More: true}
	if n == 200 {
		row.target(2.2, 3)
	}
	var contenders []contender
	for _, r := range runtimes {
		contenders = append(contenders, contender{r.name, func() (sample, error) {
			boxes := make([]*box, n)
			for i := range boxes {
				var err error
				if boxes[i], err = d.define(r, b.spec(v.kind(), "/bin/sleep", "1000")); err != nil {
					return sample{}, err
				}
			}
			begun := time.Now()
			err := forAll(boxes, func(c *box) error { return errors.Join(c.create(), c.start()) })
			took := time.Since(begun)
			err = errors.Join(err, forAll(boxes, (*box).end))
			return sample{value: float64(n) / took.Seconds()}, err
		}})
	}
	b.turnsOf(row, b.pause, rounds, contenders)
}

func forAll(boxes []*box, do func(*box) error) error {
	errs := make([]error, len(boxes))
	var all sync.WaitGroup
	for i, c := range boxes {
		all.Go(func() { errs[i] = do(c) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// shimStart measures a shim from its execve until it has printed its address.
func (b *bench) shimStart(d *daemon, v *view, runtimes []runtimeOf) error {
	row := &Row{Group: "containerd", Name: "shim, exec to address", Unit: "ms"}
	var contenders []contender
	seen := map[string]bool{}
	for _, r := range runtimes {
		if seen[r.shim] {
			continue // the same shim with another engine
		}
		seen[r.shim] = true
		path := r.shim
		if !filepath.IsAbs(path) {
			var err error
			if path, err = exec.LookPath("containerd-shim-runc-v2"); err != nil {
				return err
			}
		}
		contenders = append(contenders, contender{r.name, func() (sample, error) {
			id := b.id()
			dir, err := b.bundleIn(d.state(), id, b.spec(plain, "/bin/true"))
			if err != nil {
				return sample{}, err
			}
			words := []string{path, "-namespace", ctrNamespace, "-id", id, "-address", d.socket(), "-publish-binary", "/bin/true"}
			begun := time.Now()
			p, said, err := b.begin(append(words, "start"), dir)
			if err != nil {
				return sample{}, err
			}
			address := keep(said)
			defer address.Close()
			s, err := finish(p, said, begun, words)
			if err != nil {
				return s, err
			}
			// It serves as a child of ours now, and would wait for containerd.
			err = endServing(path, id)
			_, socket, _ := strings.Cut(output(address), "unix://")
			_ = os.Remove(socket)
			return s, err
		}})
	}
	v.do(func() { b.turns(row, 0, contenders) })
	return nil
}

// endServing ends the server that a shim's start has left behind: a child of ours
// since its parent ended, with the id on its command line.
func endServing(path, id string) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		words := strings.Split(string(line), "\x00")
		if err != nil || words[0] != path || !strings.Contains(string(line), "\x00"+id+"\x00") {
			continue
		}
		if parent, err := parentOf(pid); err != nil || parent != os.Getpid() {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return err
		}
		_, err = syscall.Wait4(pid, nil, 0, nil)
		return err
	}
	return nil
}
