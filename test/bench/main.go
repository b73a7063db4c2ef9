package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// group is a set of rows that are measured together.
type group struct {
	name, summary string
	measure       func(*bench) error
}

var groups = []group{
	{"run", "run /bin/true: warm and isolated, plain and full, on cgroup v1 and v2", (*bench).runRows},
	{"commands", "create, start, state, exec, ps, list, kill, delete", (*bench).commandRows},
	{"parallel", "8 runs at once; 200 containers created and removed at once", (*bench).parallelRows},
	{"memory", "smallest limit, the created init, the command line", (*bench).memoryRows},
	{"containerd", "through containerd: each call, ctr run, starts per second, the idle shim", (*bench).containerdRows},
	{"growth", "cost against what else there is on the host: mounts, containers, cgroups, processes", (*bench).growthRows},
	{"library", "cgroup and seccomp libraries, decoding of config.json", (*bench).libraryRows},
}

// bench is one run of the whole.
type bench struct {
	dir     string // of this run
	state   string // where the engines have theirs
	cgroup  string // name of the cgroup that everything is below
	rounds  int
	pause   time.Duration // before each turn of an isolated row
	engines []engine
	views   map[string]*view
	shims   string // our shim's path
	bare    string // path of a Go program that does nothing, "" for none
	floor   string // path of the C floor, "" for none
	quiet   quiet
	null    *os.File
	ids     int
	report  *Report
	stopped atomic.Bool // by a signal: nothing new is begun, and what was made is removed
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == callCostCommand {
		printCallCost()
		return
	}
	rounds := flag.Int("rounds", 30, "turns of each contender")
	rows := flag.String("rows", "", "groups to measure, separated by commas (default: all)")
	bin := flag.String("bin", "bin", "folder of the programs that were built")
	bare := flag.String("bare", "", "a Go program that does nothing, to measure beside --version")
	out := flag.String("docs", "", "folder whose performance.json, performance.svg and performance.md are made anew")
	floor := flag.String("floor", "", "source of the C program that does the least")
	peers := map[string]string{}
	for _, name := range []string{"crun", "runc"} {
		flag.Func(name, "the peer, with what executes it in front (default: the one that is installed)", func(words string) error {
			peers[name] = words
			return nil
		})
	}
	draw := flag.Bool("draw", false, "measure nothing: make the table and the plot of the results that there are")
	flag.Parse()
	if err := mainError(*rounds, *rows, *bin, *bare, *floor, *out, *draw, peers); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func mainError(rounds int, rows, bin, bare, floor, docs string, draw bool, peers map[string]string) error {
	if draw {
		r, err := readReport(docs)
		if err != nil {
			return err
		}
		return r.writeDocs(docs)
	}
	chosen, err := choose(rows)
	if err != nil {
		return err
	}
	b, err := newBench(rounds, bin, peers)
	if err != nil {
		return err
	}
	b.bare = bare
	b.buildFloor(floor)
	begun := time.Now()
	b.stopOnSignal()
	for _, g := range chosen {
		progress("%s: %s", g.name, g.summary)
		if err = g.measure(b); err != nil {
			err = fmt.Errorf("%s: %w", g.name, err)
		} else if b.stopped.Load() {
			err = errors.New("stopped by a signal")
		}
		if err != nil {
			break
		}
	}
	err = errors.Join(err, b.close())
	if err != nil {
		return err
	}
	b.report.Machine.Busy = b.quiet.busy
	progress("done in %s", time.Since(begun).Round(time.Second))
	fmt.Print(b.report.text())
	if docs == "" {
		return nil
	}
	// Rows that were not measured now stay as they are.
	if old, err := readReport(docs); err == nil && len(chosen) < len(groups) {
		b.report.keep(old)
	}
	return b.report.writeDocs(docs)
}

func choose(rows string) ([]group, error) {
	if rows == "" {
		return groups, nil
	}
	var chosen []group
	for name := range strings.SplitSeq(rows, ",") {
		i := slices.IndexFunc(groups, func(g group) bool { return g.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there are no rows %q", name)
		}
		chosen = append(chosen, groups[i])
	}
	return chosen, nil
}

func newBench(rounds int, bin string, peers map[string]string) (*bench, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("it makes containers with all engines, which takes root")
	}
	// What containers leave without a parent comes to us, to be waited for.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	b := &bench{dir: dir, rounds: rounds, pause: 150 * time.Millisecond, quiet: quiet{left: 2 * time.Minute}, cgroup: fmt.Sprintf("berth-bench-%d", os.Getpid())}
	if err := b.prepare(bin, peers); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

func (b *bench) prepare(bin string, peers map[string]string) error {
	var err error
	if b.null, err = os.OpenFile(os.DevNull, os.O_RDWR, 0); err != nil {
		return err
	}
	if b.shims, err = filepath.Abs(filepath.Join(bin, "containerd-shim-berth-v2")); err != nil {
		return err
	}
	if b.state, err = stateFolder(); err != nil {
		return err
	}
	if b.engines, err = findEngines(bin, b.state, peers); err != nil {
		return err
	}
	if err := b.makeRoot(); err != nil {
		return err
	}
	if b.views, err = makeViews(b.cgroup); err != nil {
		return err
	}
	b.report = newReport(b)
	return nil
}

func (b *bench) stopOnSignal() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	go func() {
		<-signals
		b.stopped.Store(true)
	}()
}

// close removes what was made.
func (b *bench) close() error {
	for _, v := range b.views {
		v.do(func() { removeGroups(b.cgroup) })
	}
	if b.state != "" {
		_ = os.RemoveAll(b.state)
	}
	return os.RemoveAll(b.dir)
}

// stateFolder makes the directory for the engines' state: on a tmpfs, as /run is on a
// host, where this machine has one.
func stateFolder() (string, error) {
	for _, top := range []string{"/run", "/dev/shm"} {
		var st unix.Statfs_t
		if unix.Statfs(top, &st) == nil && st.Type == unix.TMPFS_MAGIC {
			return os.MkdirTemp(top, "bench")
		}
	}
	return os.MkdirTemp("", "bench-state")
}

// id names a container that there has not been yet.
func (b *bench) id() string {
	b.ids++
	return fmt.Sprintf("bench%d-%d", os.Getpid(), b.ids)
}

func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
