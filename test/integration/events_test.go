package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// event is a line of the events command, as far as clients read it.
type event struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Data *struct {
		CPU struct {
			Usage struct {
				Total  uint64   `json:"total"`
				Percpu []uint64 `json:"percpu"`
				Kernel *uint64  `json:"kernel"`
				User   *uint64  `json:"user"`
			} `json:"usage"`
			Throttling map[string]uint64 `json:"throttling"`
		} `json:"cpu"`
		CPUSet struct {
			CPUs []uint16 `json:"cpus"`
		} `json:"cpuset"`
		Memory struct {
			Usage struct {
				Limit uint64 `json:"limit"`
				Usage uint64 `json:"usage"`
			} `json:"usage"`
			Raw map[string]uint64 `json:"raw"`
		} `json:"memory"`
		Pids struct {
			Current uint64 `json:"current"`
			Limit   uint64 `json:"limit"`
		} `json:"pids"`
		Blkio      map[string]json.RawMessage   `json:"blkio"`
		Hugetlb    map[string]map[string]uint64 `json:"hugetlb"`
		IntelRdt   map[string]json.RawMessage   `json:"intel_rdt"`
		Interfaces []struct{ Name string }      `json:"network_interfaces"`
	} `json:"data"`
}

func TestEventsStats(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "memory")
	harness.Controller(t, "pids")
	c := b.Container("/bin/sh", "-c", "sleep 100000 & sleep 100000 & echo ready; exec sleep 100000")
	c.Spec.Linux.Resources.Memory = &specs.LinuxMemory{Limit: ptr(int64(64 << 20))}
	c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: ptr(int64(10))}
	out, w := b.Pipe()
	c.Stdout = w
	c.RunDetached()
	w.Close()
	out.Until("ready\n")
	for _, flag := range []string{"--stats", "-stats"} {
		r := c.Command("events", []string{flag}).Run().OK(t)
		if len(r.Lines()) != 1 {
			t.Fatalf("%d lines: %s", len(r.Lines()), r.Stdout)
		}
		var e event
		harness.Decode(t, r.Stdout, &e)
		d := e.Data
		if e.Type != "stats" || e.ID != c.ID || d == nil {
			t.Fatalf("%s", r.Stdout)
		}
		if d.CPU.Usage.Total == 0 || d.CPU.Usage.Kernel == nil || d.CPU.Usage.User == nil || d.CPU.Throttling == nil {
			t.Errorf("cpu %+v", d.CPU)
		}
		if d.Memory.Usage.Limit != 64<<20 || d.Memory.Usage.Usage == 0 || len(d.Memory.Raw) == 0 {
			t.Errorf("memory %+v", d.Memory)
		}
		if d.Pids.Current != 3 || d.Pids.Limit != 10 {
			t.Errorf("pids %+v", d.Pids)
		}
		if d.Blkio == nil || d.Hugetlb == nil || d.IntelRdt == nil || d.Interfaces == nil {
			t.Errorf("a part is missing: %s", r.Stdout)
		}
		for _, i := range d.Interfaces {
			if i.Name == "lo" {
				t.Error("lo is told")
			}
		}
		// A cpuset tells where the container may run.
		for _, h := range harness.Hierarchies(t) {
			for _, name := range h.Controllers {
				if name == "cpuset" && len(d.CPUSet.CPUs) == 0 {
					t.Error("cpuset without cpus")
				}
			}
		}
	}
}

// Without a network namespace the interfaces are the host's, and none of the container's.
func TestEventsStatsOfTheHostsNetwork(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	harness.WithoutNamespace(c.Spec, specs.NetworkNamespace)
	c.RunDetached()
	var e event
	harness.Decode(t, c.Command("events", []string{"--stats"}).Run().OK(t).Stdout, &e)
	if len(e.Data.Interfaces) != 0 {
		t.Errorf("%+v", e.Data.Interfaces)
	}
}

// watched starts the events command and waits until it watches, which its first line tells.
func watched(b *harness.Box, c *harness.Container) (*harness.Stream, *harness.Running) {
	b.T.Helper()
	lines, w := b.Pipe()
	cmd := c.Command("events", []string{"--interval=50ms"})
	cmd.Stdout = w
	running := cmd.Start()
	w.Close()
	if e := next(b.T, lines); e.Type != "stats" || e.Data == nil || e.ID != c.ID {
		b.T.Fatalf("the first line is %+v", e)
	}
	return lines, running
}

func next(t testing.TB, lines *harness.Stream) (e event) {
	t.Helper()
	harness.Decode(t, lines.Line(), &e)
	return e
}

func TestEventsTellOutOfMemory(t *testing.T) {
	harness.Controller(t, "memory")
	for _, test := range []struct{ name, script string }{
		{"a process", "read go; tail /dev/zero; echo survived; read go"},
		{"the first process", "read go; exec tail /dev/zero"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/bin/sh", "-c", test.script)
			c.Spec.Linux.Resources.Memory = &specs.LinuxMemory{Limit: ptr(int64(20 << 20)), Swap: ptr(int64(20 << 20))}
			if !swapCounted(t) {
				c.Spec.Linux.Resources.Memory.Swap = nil
			}
			var hold *os.File
			c.Stdin, hold = b.Held()
			c.RunDetached()
			lines, running := watched(b, c)
			if _, err := hold.WriteString("go\n"); err != nil {
				t.Fatal(err)
			}
			for {
				e := next(t, lines)
				if e.Type == "oom" {
					if e.ID != c.ID || e.Data != nil {
						t.Errorf("%+v", e)
					}
					break
				}
			}
			hold.Close()
			c.Stdin.Close()
			c.WaitExit()
			lines.All()
			running.Wait().OK(t)
		})
	}
}

func swapCounted(t *testing.T) bool {
	h := harness.Controller(t, "memory")
	name := map[bool]string{false: "memory.memsw.limit_in_bytes", true: "memory.swap.max"}[h.Unified]
	found, err := filepath.Glob(filepath.Join(h.Dir, "*", name))
	if err != nil {
		t.Fatal(err)
	}
	return len(found) > 0
}

// The stream ends with the container, and nothing was told that did not happen.
func TestEventsEnd(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	lines, running := watched(b, c)
	c.Kill("KILL").WaitExit()
	for _, line := range strings.Split(strings.TrimSpace(lines.All()), "\n") {
		if strings.Contains(line, `"oom"`) {
			t.Errorf("told %s", line)
		}
	}
	running.Wait().OK(t)
}

func TestEventsRefusals(t *testing.T) {
	b := harness.New(t)
	b.Berth("events", "nobody").Fails(t, "container does not exist")
	b.Berth("events", "--stats", "nobody").Fails(t, "container does not exist")
	c := b.Container("/bin/true").RunDetached()
	c.WaitExit()
	c.Command("events", []string{"--stats"}).Run().Fails(t, "container not running")
	c.Command("events", nil).Run().Fails(t, "container not running")
	for _, interval := range []string{"0", "-1s", "5", "soon"} {
		c.Command("events", []string{"--interval", interval}).Run().Fails(t, interval)
	}
}
