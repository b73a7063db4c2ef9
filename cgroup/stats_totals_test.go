package cgroup

import (
	"reflect"
	"testing"
)

// Totals are the same figures as without, from fewer files: reading another would fail here.
func TestTotals(t *testing.T) {
	unreadable := map[string]string{ // directories, where the kernel has files
		"sys/fs/cgroup/web/memory.stat/": "", "sys/fs/cgroup/web/memory.peak/": "", "sys/fs/cgroup/web/pids.peak/": "",
		"sys/fs/cgroup/web/pids.events/": "", "sys/fs/cgroup/web/cpu.stat.local/": "", "sys/fs/cgroup/web/memory.events/": "",
	}
	files := map[string]string{
		"proc/self/mountinfo":               unifiedTable,
		"sys/fs/cgroup/cgroup.controllers":  "cpu io memory pids\n",
		"sys/fs/cgroup/web/cpu.stat":        "usage_usec 12\nuser_usec 7\nsystem_usec 5\n",
		"sys/fs/cgroup/web/cpu.pressure":    "some avg10=1.50 avg60=0.25 avg300=0.00 total=77\n",
		"sys/fs/cgroup/web/memory.current":  "1000\n",
		"sys/fs/cgroup/web/memory.max":      "max\n",
		"sys/fs/cgroup/web/memory.pressure": "some avg10=2.50 avg60=0.25 avg300=0.00 total=77\n",
		"sys/fs/cgroup/web/io.stat":         "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=5 dios=6\n",
		"sys/fs/cgroup/web/io.pressure":     "some avg10=3.50 avg60=0.25 avg300=0.00 total=77\n",
		"sys/fs/cgroup/web/pids.current":    "3\n",
		"sys/fs/cgroup/web/pids.max":        "10\n",
	}
	whole, err := fakeGroup(t, files).Stats(CPU, Memory, IO, Pids)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range unreadable {
		files[name] = content
	}
	g := fakeGroup(t, files)
	if s, err := g.Stats(CPU, Memory, Pids); err == nil {
		t.Fatalf("all of the statistics are %+v without the files that they are in", s)
	}
	for _, pressures := range []Part{0, Pressures} {
		totals, err := g.Stats(CPU|Memory|IO|Pids|pressures, Totals)
		if err != nil {
			t.Fatal(err)
		}
		want := *whole
		want.CPU = &CPUStats{Usage: whole.CPU.Usage, Pressure: whole.CPU.Pressure}
		if pressures == 0 {
			want.CPU.Pressure = nil
			want.Memory = &MemoryStats{Counter: whole.Memory.Counter}
			want.IO = &IOStats{Devices: whole.IO.Devices}
		}
		if !reflect.DeepEqual(totals, &want) {
			t.Errorf("with %v: got %+v %+v %+v, want %+v %+v %+v", pressures, totals.CPU, totals.Memory, totals.IO, want.CPU, want.Memory, want.IO)
		}
	}
}

// Version 1 has other files for the totals than for the rest.
func TestTotalsOfThisMachine(t *testing.T) {
	g := makeGroup(t, hostForTest(t))
	run(t, g, "eat:8")
	whole, err := g.Stats(CPU, Memory, Pids)
	if err != nil {
		t.Fatal(err)
	}
	totals, err := g.Stats(CPU, Memory, Pids, Totals)
	if err != nil {
		t.Fatal(err)
	}
	num(t, "processor time", totals.CPU.Usage, *whole.CPU.Usage)
	if whole.Memory != nil && whole.Memory.Limit != nil {
		num(t, "memory limit", totals.Memory.Limit, *whole.Memory.Limit)
	}
	if whole.Pids != nil {
		num(t, "tasks", totals.Pids.Usage, *whole.Pids.Usage)
	}
}
