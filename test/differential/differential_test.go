package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-runtime/berth/test/harness"
)

func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		if err := work(); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	harness.Main(m)
}

// The environment chooses how much is run: BERTH_DIFFERENTIAL=whole for all, =singles for each line
// alone, BERTH_DIFFERENTIAL_SHARE=2/12 for the second of twelve shares of them,
// BERTH_DIFFERENTIAL_SEED for another part, 0 for one by chance, BERTH_DIFFERENTIAL_LINES for one
// config (lines of configs.txt), and BERTH_DIFFERENTIAL_LAYOUT for some layouts.
var (
	part       = os.Getenv("BERTH_DIFFERENTIAL")
	whole      = part == "whole"
	onlyLines  = os.Getenv("BERTH_DIFFERENTIAL_LINES")
	onlyLayout = os.Getenv("BERTH_DIFFERENTIAL_LAYOUT")
	onlyShare  = os.Getenv("BERTH_DIFFERENTIAL_SHARE")
)

// share cuts the share out of all tasks that is asked for. The shares of one seed are all tasks.
func share(all []task) []task {
	if onlyShare == "" {
		return all
	}
	var number, of int
	if _, err := fmt.Sscanf(onlyShare, "%d/%d", &number, &of); err != nil || number < 1 || number > of {
		panic("BERTH_DIFFERENTIAL_SHARE is a number and how many shares there are, as in 2/12")
	}
	return all[len(all)*(number-1)/of : len(all)*number/of]
}

// systemd tells whether it is the init system here.
func systemd() bool {
	_, err := os.Stat("/run/systemd/private")
	return err == nil
}

// limit is how long a test may go on beginning new runs, where the usual part of it may for some
// seconds.
func limit(usual time.Duration) time.Duration {
	if minutes, err := strconv.Atoi(os.Getenv("BERTH_DIFFERENTIAL_MINUTES")); err == nil {
		return time.Duration(minutes) * time.Minute
	}
	if whole {
		return 45 * time.Minute
	}
	if fixed {
		return 10 * time.Minute // it ends by itself before that
	}
	return usual
}

// chosen is how many runs a seed that is given chooses: the same ones on any machine, where time
// would end the part sooner or later.
const chosen = 120

// usualSeed chooses the part that is run where nobody says otherwise. It is the same each time
// until the whole run (make differential) finds nothing that is not explained: what a test tells is
// to be about the change.
const usualSeed = 1

// fixed is unset for a part by chance, of as much as there is time for.
var fixed = os.Getenv("BERTH_DIFFERENTIAL_SEED") != "0"

func seed() uint64 {
	n, err := strconv.ParseUint(os.Getenv("BERTH_DIFFERENTIAL_SEED"), 10, 64)
	switch {
	case err != nil:
		return usualSeed
	case n == 0:
		return uint64(time.Now().UnixNano()) % 1000000
	}
	return n
}

// A task is a job in a layout.
type task struct {
	layout Layout
	job    job
}

// configTasks are all configs: each line alone in each layout, each pair and each chance config in
// one.
func configTasks(sections []section, where []Layout, from *rand.Rand) (all []task) {
	if onlyLines != "" {
		lines := strings.Split(strings.TrimSpace(onlyLines), "\n")
		for _, l := range where {
			if changesOf(lines[0])[0].check() == nil { // or it is a command
				all = append(all, task{l, job{Lines: lines}})
			}
		}
		return all
	}
	for _, l := range where {
		all = append(all, task{l, job{Lines: []string{}}})
		for _, lines := range singles(sections) {
			all = append(all, task{l, job{Lines: lines}})
		}
	}
	var several [][]string
	if part != "singles" {
		several = pairs(sections)
	}
	for n := 0; part != "singles" && n < 1000; n++ {
		several = append(several, random(sections, from))
	}
	for _, lines := range several {
		// One that waits for its end by a time limit is seen enough alone.
		if !strings.Contains(strings.Join(lines, " "), `"hang"`) {
			all = append(all, task{where[from.IntN(len(where))], job{Lines: lines}})
		}
	}
	from.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func TestDifferential(t *testing.T) {
	sections, err := readSections(configLines)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := readTable(tableText)
	if err != nil {
		t.Fatal(err)
	}
	if file := os.Getenv("BERTH_DIFFERENTIAL_AGAIN"); file != "" {
		c := newCollector(rows)
		if err := c.again(file); err != nil {
			t.Fatal(err)
		}
		c.report(t, 0)
		if whole { // what all shares have kept
			stale(t, rows, layouts(systemd()))
		}
		return
	}
	s := newStage(t)
	complete := part == "whole" && onlyLines == "" && onlyLayout == "" && onlyShare == ""
	run := func(name string, usual time.Duration, tasks []task) {
		t.Run(name, func(t *testing.T) {
			left := s.play(t, newCollector(rows), usual, tasks)
			complete = complete && left == 0
		})
	}
	run("Configs", 45*time.Second, share(configTasks(sections, s.layouts, s.from)))
	run("Commands", 25*time.Second, share(commandTasks(s.layouts, s.from)))
	if complete {
		stale(t, rows, s.layouts)
	}
}

// A stage is what tasks are played on: the engines, and the layouts of this machine in which there
// is a peer.
type stage struct {
	template worker
	layouts  []Layout
	from     *rand.Rand
}

func newStage(t *testing.T) *stage {
	harness.NeedContainers(t)
	peers, missing := findPeers()
	for _, reason := range missing {
		t.Log(reason)
	}
	if !slices.ContainsFunc(peers, func(e engine) bool { return e.Name == "runc" }) {
		harness.Skip(t, "needs runc, which the table explains: %s", strings.Join(missing, "; "))
	}
	var where []Layout
	for _, l := range layouts(systemd()) {
		if strings.Contains(l.Name, onlyLayout) && slices.ContainsFunc(peers, func(e engine) bool { return slices.Contains(l.Peers, e.Name) }) {
			where = append(where, l)
		}
	}
	number := seed()
	fmt.Printf("BERTH_DIFFERENTIAL_SEED=%d, beside", number)
	for _, p := range peers {
		fmt.Printf(" %s %s", p.Name, p.Version)
	}
	fmt.Println()
	if whole {
		for _, p := range peers {
			fmt.Printf("COUNT %s: %s\n", p.Name, p.Version)
		}
	}
	template := worker{
		Engines: append([]engine{{"berth", harness.Engine(t), ""}}, peers...),
		Session: t.TempDir(), Inside: harness.Helper(t), Busybox: harness.Busybox(t),
	}
	os.Chmod(template.Session, 0o755)
	os.Chmod(template.Session+"/..", 0o755)
	return &stage{template, where, rand.New(rand.NewPCG(number, 0))}
}

// play runs tasks until there are no more, or time is up, and reports the differences that no row
// of the table names. It returns how many tasks there was no time for.
func (s *stage) play(t *testing.T, c *collector, usual time.Duration, all []task) (left int) {
	var progress io.Writer = io.Discard
	if file := os.Getenv("BERTH_DIFFERENTIAL_PROGRESS"); file != "" {
		f, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		progress = f
	}
	if file := os.Getenv("BERTH_DIFFERENTIAL_KEEP"); file != "" {
		c.keep(t, file)
	}
	end := time.Now().Add(limit(usual))
	if fixed && part == "" && len(all) > chosen {
		all = all[:chosen]
	}
	var next sync.Mutex
	var group sync.WaitGroup
	for range 2 * runtime.NumCPU() { // much of a run is waiting
		group.Go(func() {
			p := pool{s.template, map[string]*running{}}
			defer p.end()
			for {
				next.Lock()
				if len(all) == 0 || time.Now().After(end) {
					next.Unlock()
					return
				}
				now := all[0]
				all = all[1:]
				next.Unlock()
				fmt.Fprintf(progress, "%s %s %q\n", time.Now().Format(time.TimeOnly), now.layout.Name, append(now.job.Lines, now.job.Command...))
				outcomes, err := p.do(now.layout, now.job)
				c.take(now, outcomes, err)
			}
		})
	}
	group.Wait()
	c.report(t, len(all))
	return len(all)
}
