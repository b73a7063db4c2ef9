package enforce

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/node/config"
	"github.com/berth-runtime/berth/node/enforce/record"
	"github.com/berth-runtime/berth/node/machine"
	"github.com/berth-runtime/berth/node/plan"
	"golang.org/x/sys/unix"
)

// TestMain lets this program be a process that uses memory or a processor.
func TestMain(m *testing.M) {
	switch what, argument, _ := strings.Cut(os.Getenv("BERTH_NODE_TEST_USE"), "="); what {
	case "memory":
		n, _ := strconv.Atoi(argument)
		block := make([]byte, n)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		fmt.Println("used")
		time.Sleep(time.Hour)
	case "cache":
		f, err := os.Create(argument)
		if err == nil {
			_, err = f.Write(make([]byte, 200_000_000))
		}
		if err == nil {
			err = f.Sync() // what is dirty can't be reclaimed at once
		}
		fmt.Println("used", err)
		f.Close()
		time.Sleep(time.Hour)
	case "processor":
		fmt.Println("used")
		for x := 1; x != 0; x = 1103515245*x | 1 { // never: an odd number times an odd one
		}
	case "killed":
		if err := killed(argument); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case "nothing":
		fmt.Println("used")
		time.Sleep(time.Hour)
	}
	os.Exit(m.Run())
}

// realNode is this very machine with cgroups of the test's own at the top, where
// there is no systemd to own that place.
type realNode struct {
	t          *testing.T
	m          *machine.Machine
	top, state string
	one        *Engine
}

func onThisMachine(t *testing.T) *realNode {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("making cgroups at the top takes root")
	}
	m, err := machine.Open()
	if errors.Is(err, cgroup.ErrNotMounted) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if m.Init() == config.Systemd {
		t.Skip("systemd owns the top of the hierarchy here; the tests in guests are for it")
	}
	for _, c := range []string{"cpu", "memory", "pids"} {
		if m.Cgroups.Controller(c) == nil {
			t.Skipf("there is no %s controller here", c)
		}
	}
	n := &realNode{t: t, m: m, top: fmt.Sprintf("/berth-node-test-%d", os.Getpid()), state: t.TempDir()}
	g, err := m.Cgroups.Create(n.top)
	if err != nil {
		if cgroup.Denied(err) {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Purge(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// plan makes a plan for two cgroups below the test's own: no system container,
// which would move the processes of this machine.
func (n *realNode) plan(text string) *plan.Plan {
	n.t.Helper()
	c, err := config.Parse("node.yaml", text, []config.Override{{Key: "cgroup-root", Value: n.top + "/work"}, {Key: "kube-container", Value: n.top + "/kube"},
		{Key: "state-dir", Value: n.state}, {Key: "kernel-parameters", Value: "off"}, {Key: "oom-score-mode", Value: "off"}, {Key: "berth-parent", Value: "off"}})
	if err != nil {
		n.t.Fatal(err)
	}
	p, err := n.m.Prepare(context.Background(), c)
	if err != nil {
		n.t.Fatal(err)
	}
	return p
}

func (n *realNode) engine() *Engine {
	n.t.Helper()
	if n.one != nil {
		return n.one
	}
	r, err := record.Open(n.state, n.m.BootID())
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { r.Close() })
	n.one = &Engine{Machine: n.m, Record: r}
	return n.one
}

func (n *realNode) apply(text string) {
	n.t.Helper()
	if err := n.engine().Apply(context.Background(), n.plan(text)); err != nil {
		n.t.Fatal(err)
	}
}

// run starts this program in a cgroup, doing something, and waits until it does.
func (n *realNode) run(group, what string, wrap ...string) *exec.Cmd {
	n.t.Helper()
	g, err := n.m.Cgroups.Open(group, cgroup.Force())
	if err != nil {
		n.t.Fatal(err)
	}
	defer g.Close()
	self, err := os.Executable()
	if err != nil {
		n.t.Fatal(err)
	}
	args := append(append([]string{"/bin/sh", "-c", `read go; exec "$@"`, "sh"}, wrap...), self)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "BERTH_NODE_TEST_USE="+what)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		n.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if err := g.Join(cmd.Process.Pid); err != nil {
		n.t.Fatal(err)
	}
	fmt.Fprintln(in, "go")
	in.Close()
	// Until it uses what it should, or was killed for that.
	_, _ = out.Read(make([]byte, 8))
	return cmd
}

func (n *realNode) file(group, name string) string {
	n.t.Helper()
	g, err := n.m.Cgroups.Open(group)
	if err != nil {
		n.t.Fatal(err)
	}
	defer g.Close()
	text, err := g.ReadFile(name)
	if err != nil {
		n.t.Fatal(err)
	}
	return text
}

// limitOf is the file of a limit of memory on this machine.
func (n *realNode) limitOf() string {
	if n.m.Cgroups.Controller("memory").Version == 2 {
		return "memory.max"
	}
	return "memory.limit_in_bytes"
}

// leaving gives a reservation that leaves so much memory to the workloads.
func (n *realNode) leaving(bytes int64) string {
	n.t.Helper()
	capacity, err := n.m.Capacity()
	if err != nil {
		n.t.Fatal(err)
	}
	huge := int64(0)
	for name, amount := range capacity {
		if name.PageSize() > 0 {
			huge += amount
		}
	}
	return fmt.Sprintf("system-reserved: {memory: %d}\npods-enforce: true\n", capacity["memory"]-huge-bytes)
}

// A hog among the workloads dies of their limit; who is elsewhere lives on.
func TestMemoryHog(t *testing.T) {
	n := onThisMachine(t)
	n.apply(n.leaving(64<<20) + "kube-reserved: {cpu: 100m}\nkube-reserved-enforce: cpu\n")
	other := n.run(n.top+"/kube", "memory=100000000")
	hog := n.run(n.top+"/work", "memory=200000000")
	err := hog.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the hog ended with %v", err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

// Two that want a whole processor get it as the reservations say, and neither more.
func TestProcessorHogs(t *testing.T) {
	n := onThisMachine(t)
	if _, err := exec.LookPath("taskset"); err != nil {
		t.Skip(err)
	}
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		t.Fatal(err)
	}
	one := 0
	for !allowed.IsSet(one) {
		one++
	}
	n.apply("kube-reserved: {cpu: 25%}\nkube-reserved-enforce: cpu\npods-enforce: cpu\n")
	for _, group := range []string{"/kube", "/work"} {
		// On one processor, so that they are in each other's way.
		n.run(n.top+group, "processor", "taskset", "-c", strconv.Itoa(one))
	}
	used := func(group string) uint64 {
		g, err := n.m.Cgroups.Open(n.top + group)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		stats, err := g.Stats(cgroup.CPU)
		if err != nil || stats.CPU == nil || stats.CPU.Usage == nil {
			t.Fatal(err)
		}
		return *stats.CPU.Usage
	}
	// On a machine that is busy otherwise a processor stands still for long, and whoever
	// is on it then is charged; that evens out over a longer time, and only that.
	const enough, most = 1e9, 20e9
	kube0, work0 := used("/kube"), used("/work")
	var kube, work float64
	for until := time.Now().Add(60 * time.Second); time.Now().Before(until); {
		time.Sleep(50 * time.Millisecond)
		kube, work = float64(used("/kube")-kube0), float64(used("/work")-work0)
		if kube+work > enough && work > 2*kube && work < 4.5*kube || kube+work > most {
			break
		}
	}
	ratio := work / kube
	t.Logf("workloads %.2f s, kube %.2f s of one processor: %.2f to 1", work/1e9, kube/1e9, ratio)
	if ratio < 2 || ratio > 4.5 {
		t.Errorf("75%% and 25%% came out as %.2f to 1", ratio)
	}
}

// Memory that can be reclaimed is, before the limit; what can't be keeps its limit,
// and lives.
func TestLowerMemory(t *testing.T) {
	n := onThisMachine(t)
	n.apply(n.leaving(512 << 20))
	before := n.file(n.top+"/work", n.limitOf())

	n.run(n.top+"/work", "cache="+filepath.Join(t.TempDir(), "file"))
	n.apply(n.leaving(96<<20) + "reclaim-deadline: 20s\n")
	if got := n.file(n.top+"/work", n.limitOf()); got == before {
		t.Errorf("a limit above what can't be reclaimed is still %s", got)
	}
	n.apply(n.leaving(512 << 20))

	live := n.run(n.top+"/work", "memory=200000000")
	p := n.plan(n.leaving(96<<20) + "reclaim-deadline: 500ms\n")
	err := n.engine().Apply(context.Background(), p)
	var stuck *StuckError
	if !errors.As(err, &stuck) || !strings.Contains(err.Error(), "node.yaml:") && !strings.Contains(err.Error(), "pods-enforce") {
		t.Fatalf("%v", err)
	}
	t.Log(err)
	if got := n.file(n.top+"/work", n.limitOf()); got != before {
		t.Errorf("the limit is %s, and was %s", got, before)
	}
	if err := live.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("it was killed: %v", err)
	}
}

// Undo removes the cgroups that were made, and gives back the values of those that
// were there; processes that are not ours keep a cgroup.
func TestUndoOfCgroups(t *testing.T) {
	n := onThisMachine(t)
	g, err := n.m.Cgroups.Create(n.top + "/kube")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	before := n.file(n.top+"/kube", n.limitOf())
	text := n.leaving(64<<20) + "kube-reserved: {memory: 15Mi}\nkube-reserved-enforce: true\n"
	n.apply(text)
	busy := n.run(n.top+"/work", "nothing")
	if err := n.engine().Undo(context.Background()); !errors.Is(err, cgroup.ErrBusy) {
		t.Errorf("with a process in it: %v", err)
	}
	busy.Process.Kill()
	busy.Wait()
	if err := n.engine().Undo(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := n.m.Cgroups.Open(n.top + "/work"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was made is there: %v", err)
	}
	if got := n.file(n.top+"/kube", n.limitOf()); got != before {
		t.Errorf("the limit is %s, and was %s", got, before)
	}
	if len(n.engine().Record.Changes) > 0 {
		t.Errorf("on record: %v", n.engine().Record.Changes)
	}
}

// A process that is killed while making cgroups leaves nothing that Undo would not find.
func TestKilledMakingCgroups(t *testing.T) {
	n := onThisMachine(t)
	text := n.leaving(64<<20) + "kube-reserved: {memory: 15Mi}\nkube-reserved-enforce: true\n"
	type killed struct{}
	total := 0
	for killAt := 0; killAt <= total; killAt++ {
		points := 0
		n.engine().at = func(string) {
			if points++; points == killAt {
				panic(killed{})
			}
		}
		func() {
			defer func() {
				if p := recover(); p != nil && p != (killed{}) {
					panic(p)
				}
			}()
			n.apply(text)
		}()
		if killAt == 0 {
			total = points
		}
		n.engine().at = nil
		if err := n.engine().Undo(context.Background()); err != nil {
			t.Fatalf("killed at %d of %d: %v", killAt, total, err)
		}
		for _, group := range []string{"/kube", "/work"} {
			if _, err := n.m.Cgroups.Open(n.top + group); !errors.Is(err, os.ErrNotExist) {
				t.Fatalf("killed at %d of %d: %s is there still (%v)", killAt, total, group, err)
			}
		}
	}
	if total < 10 {
		t.Errorf("only %d points", total)
	}
}
