package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// commandRows measure each command in the life of one container.
func (b *bench) commandRows() error {
	v := b.pureView()
	commands := []struct {
		name       string
		crun, runc float64
		args       func(l *life) []string
	}{
		{"create", 0.75, 0.20, func(l *life) []string { return []string{"create", "--bundle", l.dir, "--pid-file", l.pidFile, l.id} }},
		{"state", 0.60, 0.30, func(l *life) []string { return []string{"state", l.id} }},
		{"start", 0.60, 0.30, func(l *life) []string { return []string{"start", l.id} }},
		{"exec", 0.70, 0.12, func(l *life) []string { return []string{"exec", l.id, "/bin/true"} }},
		{"ps", 0, 0, func(l *life) []string { return []string{"ps", l.id} }},
		{"ps --format json", 0, 0, func(l *life) []string { return []string{"ps", "--format", "json", l.id} }},
		{"list", 0.60, 0.30, func(l *life) []string { return []string{"list"} }},
		{"kill", 0.60, 0.30, func(l *life) []string { return []string{"kill", l.id, "KILL"} }},
		{"delete", 0.60, 0.30, func(l *life) []string { return []string{"delete", l.id} }},
	}
	dir, err := b.bundle("commands", b.spec(v.kind(), "/bin/sleep", "1000"))
	if err != nil {
		return err
	}
	lives := make([]*life, len(b.engines))
	for i, e := range b.engines {
		lives[i] = &life{b: b, engine: e, dir: dir, samples: make([][]sample, len(commands))}
	}
	v.do(func() {
		for round := range b.rounds {
			b.quiet.await()
			for i := range lives {
				l := lives[(i+round)%len(lives)]
				if l.failed != nil || b.stopped.Load() {
					continue
				}
				l.begin()
				for n, c := range commands {
					if l.failed == nil {
						l.turn(n, c.name, c.args(l))
					}
				}
				l.end()
			}
		}
	})
	for n, c := range commands {
		row := &Row{Group: "commands", Name: fmt.Sprintf("%s, %s, cgroup %s", c.name, v.kind(), v.words), Unit: "ms"}
		row.target(c.crun, c.runc)
		for _, l := range lives {
			row.Cells = append(row.Cells, cellOf(l.engine.name, l.samples[n], l.failed))
		}
		b.report.add(row)
	}
	b.versionRow()
	return nil
}

// bareGo is a program that prints one line: the least that one in Go takes.
const bareGo = "bare Go"

// versionRow measures what a program takes that does next to nothing: its start and
// its end, above those of true(1).
func (b *bench) versionRow() {
	row := &Row{Group: "commands", Name: "--version, above what true takes (aim: 1.3)", Unit: "ms",
		Target: map[string]float64{bareGo: 1.18}} // 1.3 where that takes 1.1
	engines := b.engines
	if b.bare != "" {
		engines = append(slices.Clone(engines), engine{name: bareGo, path: b.bare})
	}
	var contenders []contender
	for _, e := range engines {
		contenders = append(contenders, contender{e.name, func() (sample, error) {
			least, err := b.time([]string{"/bin/true"})
			if err != nil {
				return least, err
			}
			s, err := b.time(e.words("--version"))
			return sample{value: s.value - least.value, cpu: s.cpu - least.cpu}, err
		}})
	}
	// What is measured is small beside what differs from turn to turn.
	b.turnsOf(row, 0, 10*b.rounds, contenders)
}

// life is the life of a container of one engine, over and over.
type life struct {
	b                *bench
	engine           engine
	dir, id, pidFile string
	samples          [][]sample // by command
	failed           error
}

func (l *life) begin() {
	l.id = l.b.id()
	l.pidFile = filepath.Join(l.b.dir, l.id+".pid")
	// After the other contender's commands all start from the same rest.
	time.Sleep(l.b.pause)
}

func (l *life) turn(n int, name string, args []string) {
	s, err := l.b.time(l.engine.command(args...))
	if err != nil {
		l.failed = err
		progress("%s: %s: %v", name, l.engine.name, err)
		return
	}
	l.samples[n] = append(l.samples[n], s)
	if name == "kill" {
		// The container is our child since its engine has ended.
		l.failed = waitFor(l.pidFile)
	}
}

func (l *life) end() {
	if l.failed != nil {
		_, _ = l.b.time(l.engine.command("delete", "--force", l.id))
	}
	_ = os.Remove(l.pidFile)
}

// waitFor reaps the process whose pid is in a file.
func waitFor(pidFile string) error {
	pid, err := pidIn(pidFile)
	if err != nil {
		return err
	}
	for {
		_, err = unix.Wait4(pid, nil, 0, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

func pidIn(file string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}
