package cgroup

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Each process that is started, and what it forks at once, is in the group in every hierarchy; of
// the threads of this process none is, then or later.
func TestStartLeavesNoProcessOutside(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	var all sync.WaitGroup
	for range 8 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 10 {
				var out strings.Builder
				cmd := exec.Command("sh", "-c", "(cat /proc/self/cgroup) & cat /proc/self/cgroup; wait")
				cmd.Stdout = &out
				if err := g.Start(cmd); err != nil {
					t.Error(err)
					return
				}
				if err := cmd.Wait(); err != nil {
					t.Error(err)
				}
				at, err := parseMemberships([]byte(out.String()))
				if err != nil {
					t.Error(err)
				}
				for i := range g.nodes {
					n := &g.nodes[i]
					in := 0
					for _, m := range at {
						if m.in(n.Hierarchy) && m.path == g.path {
							in++
						}
					}
					if in != 2 {
						t.Errorf("%s: %d of 2 processes are in %s:\n%s", n.Hierarchy, in, g.path, &out)
					}
				}
			}
		}()
	}
	all.Wait()
	for i := range g.nodes {
		file := "tasks"
		if g.nodes[i].Version == 2 {
			file = "cgroup.procs"
		}
		if left, err := os.ReadFile(g.nodes[i].full(file)); err != nil || len(left) > 0 {
			t.Errorf("%s: left %q, %v", g.nodes[i].Hierarchy, left, err)
		}
	}
}

// The process's first thread can't end, so it must not be the one that enters.
func TestStartFromTheFirstThread(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	out, state := run(t, g, "start:"+g.path+"-inner")
	if !state.Success() || out != "ok" {
		t.Errorf("%v: %s", state, out)
	}
}

func TestStartOfWhatIsNotThere(t *testing.T) {
	host := hostForTest(t)
	g := makeGroup(t, host)
	if err := g.Start(exec.Command("/no such program")); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
	// The caller's attributes stay the caller's.
	cmd := exec.Command("true")
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	attr := cmd.SysProcAttr
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || attr.UseCgroupFD {
		t.Errorf("%v, %+v", err, attr)
	}
}

func init() {
	// In a program whose first thread is ours: the goroutine of main.init has it.
	roles["start"] = func(path string) {
		host, err := Detect()
		if err != nil {
			panic(err)
		}
		g, err := host.Create(path)
		if err != nil {
			panic(err)
		}
		defer g.Destroy()
		for range 100 {
			cmd := exec.Command("true")
			if err := g.Start(cmd); err != nil {
				panic(err)
			}
			cmd.Wait()
		}
		pids, err := g.AllProcs()
		if err != nil || slices.Contains(pids, os.Getpid()) {
			panic("in the group")
		}
		os.Stdout.WriteString("ok")
	}
}
