package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// parallelRows measure many commands at once.
func (b *bench) parallelRows() error {
	v := b.pureView()
	if err := b.runAtOnce(v, 8, min(b.rounds, 15)); err != nil {
		return err
	}
	return b.createAtOnce(v, 200, min(b.rounds, 2))
}

func (b *bench) runAtOnce(v *view, n, rounds int) error {
	dirs, err := b.bundles(n, "at-once", v.kind(), "/bin/true")
	if err != nil {
		return err
	}
	row := &Row{Group: "parallel", Name: fmt.Sprintf("%d runs at once, %s, cgroup %s", n, v.kind(), v.words), Unit: "ms"}
	var contenders []contender
	for _, e := range b.engines {
		contenders = append(contenders, contender{e.name, func() (sample, error) {
			return b.atOnce(n, func(i int) []string { return e.command("run", "--bundle", dirs[i], b.id()) })
		}})
	}
	v.do(func() { b.turnsOf(row, b.pause, rounds, contenders) })
	return nil
}

// createAtOnce measures n containers until all of them are created, and until all
// are removed.
func (b *bench) createAtOnce(v *view, n, rounds int) error {
	dirs, err := b.bundles(n, "many", v.kind(), "/bin/sleep", "1000")
	if err != nil {
		return err
	}
	create := &Row{Group: "parallel", Name: fmt.Sprintf("create %d containers at once, %s, cgroup %s", n, v.kind(), v.words), Unit: "ms"}
	remove := &Row{Group: "parallel", Name: fmt.Sprintf("remove them at once, %s, cgroup %s", v.kind(), v.words), Unit: "ms"}
	made, gone := map[string][]sample{}, map[string][]sample{}
	failed := map[string]error{}
	v.do(func() {
		for range rounds {
			for _, e := range b.engines {
				if failed[e.name] != nil || b.stopped.Load() {
					continue
				}
				ids := make([]string, n)
				for i := range ids {
					ids[i] = b.id()
				}
				pidFile := func(i int) string { return filepath.Join(b.dir, ids[i]+".pid") }
				s, err := b.atOnce(n, func(i int) []string {
					return e.command("create", "--bundle", dirs[i], "--pid-file", pidFile(i), ids[i])
				})
				t, err2 := b.atOnce(n, func(i int) []string { return e.command("delete", "--force", ids[i]) })
				for i := range ids {
					_ = waitFor(pidFile(i))
					_ = os.Remove(pidFile(i))
				}
				if failed[e.name] = errors.Join(err, err2); failed[e.name] != nil {
					progress("200 at once: %s: %v", e.name, failed[e.name])
					continue
				}
				made[e.name], gone[e.name] = append(made[e.name], s), append(gone[e.name], t)
			}
		}
	})
	for _, e := range b.engines {
		create.Cells = append(create.Cells, cellOf(e.name, made[e.name], failed[e.name]))
		remove.Cells = append(remove.Cells, cellOf(e.name, gone[e.name], failed[e.name]))
	}
	b.report.add(create)
	b.report.add(remove)
	return nil
}

func (b *bench) bundles(n int, name string, k kind, args ...string) ([]string, error) {
	dirs := make([]string, n)
	for i := range dirs {
		var err error
		if dirs[i], err = b.bundle(fmt.Sprintf("%s-%d", name, i), b.spec(k, args...)); err != nil {
			return nil, err
		}
	}
	return dirs, nil
}

// atOnce starts n commands and waits for all of them.
func (b *bench) atOnce(n int, words func(i int) []string) (sample, error) {
	type running struct {
		process *os.Process
		said    *os.File
		words   []string
	}
	all := make([]running, 0, n)
	begun := time.Now()
	var failed error
	for i := range n {
		w := words(i)
		p, said, err := b.begin(w, "")
		if err != nil {
			failed = err
			break
		}
		all = append(all, running{p, said, w})
	}
	var sum sample
	for _, r := range all {
		s, err := finish(r.process, r.said, begun, r.words)
		if err != nil {
			failed = err
		}
		sum.cpu += s.cpu
	}
	sum.value = milliseconds(time.Since(begun))
	return sum, failed
}

// reapAll reaps what has ended of what came to us without a parent.
func reapAll() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if pid <= 0 || err != nil && err != unix.EINTR {
			return
		}
	}
}
