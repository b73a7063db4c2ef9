package integration

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// Limits that are set by their OCI names bite, whatever version the host has the controller on.
// (The tests of package cgroup have them one by one; here the command line is what is tested.)

func TestCgroupMemoryLimitKills(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "memory")
	path := demo(b)
	tool(b, "set", "memory.limit=32M", path).OK(t)
	// tail keeps what it is asked for, before it prints it. What it gets comes from outside: a
	// program beside it under the same limit may be the one that comes to harm, and tail's input to
	// an early end.
	keep := func(bytes int) harness.Result {
		in, w, err := os.Pipe()
		must(t, err)
		written := make(chan struct{})
		go func() {
			defer close(written)
			defer w.Close()
			_, _ = io.CopyN(w, zeros{}, int64(bytes)) // it fails where nobody reads any more
		}()
		cmd := b.Command("cgroup", "exec", path, "sh", "-c", fmt.Sprintf("tail -c %d > /dev/null; exit $?", bytes))
		cmd.Stdin = in
		r := cmd.Run()
		in.Close()
		<-written
		return r
	}
	keep(1_000_000).OK(t)
	// Where there is swap it may go there instead: the sum is limited too, where the kernel counts
	// it.
	if r := tool(b, "set", "memory.limit=32M", "memory.swap=32M", path); r.Code != 0 {
		harness.Skip(t, "needs a kernel that counts swap: %s", r.Stderr)
	}
	if r := keep(200_000_000); r.Code != 137 {
		t.Errorf("200 MB in 32 MiB: status %d, want that of a killed process: %s", r.Code, r.Stderr)
	}
	if got := tool(b, "get", "-n", "-v", "-r", "memory.limit", path).OK(t).Stdout; got != "33554432\n" {
		t.Errorf("memory.limit reads %q", got)
	}
}

// zeros are read without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestCgroupPidsLimitRefuses(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "pids")
	path := demo(b)
	tool(b, "set", "pids.limit=3", path).OK(t)
	r := tool(b, "exec", path, "sh", "-c", "for i in 1 2 3 4 5; do sleep 1000 & done; echo all")
	if r.Code == 0 && strings.Contains(r.Stdout, "all") {
		t.Errorf("5 processes beside a shell under a limit of 3: %+v", r)
	}
	if got := tool(b, "get", "-n", "-v", "-r", "pids.events", path).OK(t).Stdout; !strings.HasPrefix(got, "max ") || strings.HasPrefix(got, "max 0\n") {
		t.Errorf("pids.events: %q", got)
	}
	tool(b, "set", "pids.limit=max", path).OK(t)
	if got := fileOf(t, "pids", path, "pids.max", "pids.max"); got != "max" {
		t.Errorf("pids.max is %s", got)
	}
}

func TestCgroupQuotaThrottles(t *testing.T) {
	b := harness.New(t)
	h := harness.Controller(t, "cpu")
	path := demo(b)
	tool(b, "set", "cpu.period=20000", "cpu.quota=2000", path).OK(t)
	tool(b, "exec", path, "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done").OK(t)
	stat, err := os.ReadFile(filepath.Join(h.Dir, path, "cpu.stat"))
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := strconv.Atoi(statusWord(string(stat), "nr_throttled")); n == 0 {
		t.Errorf("not throttled:\n%s", stat)
	}
	// A quota alone leaves the period as it is.
	tool(b, "set", "cpu.quota=max", path).OK(t)
	if got := strings.Fields(tool(b, "get", "-n", "-v", "-r", "cpu.quota", "-r", "cpu.period", path).OK(t).Stdout); len(got) != 2 || got[0] != "-1" || got[1] != "20000" {
		t.Errorf("quota and period: %q", got)
	}
}

// statusWord finds the value of a key in "KEY VALUE" lines.
func statusWord(text, key string) string {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == key {
			return f[1]
		}
	}
	return ""
}

func TestCgroupCpusetBinds(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "cpuset")
	path := demo(b)
	allowed := func() string {
		t.Helper()
		r := tool(b, "exec", path, "cat", "/proc/self/status").OK(t)
		return statusField(r.Stdout, "Cpus_allowed_list")
	}
	if all := allowed(); !strings.ContainsAny(all, "-,") {
		harness.Skip(t, "needs more than one processor, and has %s", all)
	}
	tool(b, "set", "cpu.cpus=0", path).OK(t)
	if got := allowed(); got != "0" {
		t.Errorf("may run on %s", got)
	}
	tool(b, "set", "cpu.cpus=100000", path).Fails(t, "cpu", "100000")
}

func TestCgroupDevicesAreDenied(t *testing.T) {
	b := harness.New(t)
	path := demo(b)
	tool(b, "set", "devices=deny a, allow c 1:3 rwm", path).OK(t)
	tool(b, "exec", path, "sh", "-c", "echo > /dev/null").OK(t)
	if r := tool(b, "exec", path, "head", "-c1", "/dev/zero"); r.Code == 0 || !strings.Contains(r.Stderr, "not permitted") {
		t.Errorf("/dev/zero: status %d: %s", r.Code, r.Stderr)
	}
	tool(b, "set", "devices=deny a, allow c 1:5 r", path).OK(t)
	tool(b, "exec", path, "sh", "-c", "head -c1 /dev/zero").OK(t)
	tool(b, "set", "devices=allow", path).Fails(t, "devices", "allow c 1:3 rwm")
	tool(b, "set", "devices=allow x", path).Fails(t, "/devices/0/type")
}

// A value that the kernel takes otherwise is told.
func TestCgroupSetTellsDifferences(t *testing.T) {
	b := harness.New(t)
	h := harness.Controller(t, "memory")
	path := demo(b)
	tool(b, "set", "memory.limit=10000001", path).OK(t).Warns(t, "/memory/limit", "10000001", "9998336")
	// The name of a file gets the value as it is.
	name := map[bool]string{false: "memory.limit_in_bytes", true: "memory.max"}[h.Unified]
	tool(b, "set", "-r", name+"=8M", path).OK(t)
	if got := tool(b, "get", "-n", "-r", name, path).OK(t).Stdout; got != name+": 8388608\n" {
		t.Errorf("got %q", got)
	}
	// So is one that the kernel ignores, as version 1 does with this one since Linux 5.16.
	const kmem = "memory.kmem.limit_in_bytes"
	if _, err := os.Stat(filepath.Join(h.Dir, path, kmem)); err == nil {
		r := tool(b, "set", kmem+"=1M", path).OK(t)
		if got := fileOf(t, "memory", path, kmem, ""); got != "1048576" {
			r.Warns(t, kmem, "1M", got)
		}
	}
	// Nothing is written where one of the fields is wrong.
	tool(b, "set", "memory.limit=16M", "cpu.period=10", path).Exits(t, 1)
	if got := tool(b, "get", "-n", "-v", "-r", "memory.limit", path).OK(t).Stdout; got != "8388608\n" {
		t.Errorf("memory.limit is %q after a set that was refused", got)
	}
	// What the other version calls it is answered with what both understand.
	other := map[bool]string{true: "memory.limit_in_bytes", false: "memory.max"}[h.Unified]
	tool(b, "set", other+"=8M", path).Fails(t, other, "memory.limit")
	for _, wrong := range []string{"memory.limit=lots", "cpu.shares=-1", "blockIO.weightDevice=8:0", "network.classID=x", "cgroup.procs=1", "nonsense.max=1"} {
		name, _, _ := strings.Cut(wrong, "=")
		tool(b, "set", wrong, path).Fails(t, name)
	}
}

func TestCgroupSetFromConfig(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "pids")
	path := demo(b)
	config := b.WriteFile("config.json", `{"ociVersion": "1.2.0", "linux": {"resources": {"pids": {"limit": 44}}}}`, 0o644)
	tool(b, "set", "--resources", config, path).OK(t)
	if got := fileOf(t, "pids", path, "pids.max", "pids.max"); got != "44" {
		t.Errorf("pids.max is %s", got)
	}
	tool(b, "set", path).Fails(t, "no limit")
}

// The controller may be one that nobody has enabled yet, on the version 2 side of a hybrid host.
func TestCgroupHugepages(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "hugetlb")
	if _, err := os.Stat("/sys/kernel/mm/hugepages/hugepages-2048kB"); err != nil {
		harness.Skip(t, "needs huge pages of 2 MiB: %v", err)
	}
	restoreEnabled(t)
	path := demo(b)
	tool(b, "set", "hugepageLimits.2MB=4M", path).OK(t)
	if got := tool(b, "get", "-n", "-v", "-r", "hugepageLimits.2MB", path).OK(t).Stdout; got != "4194304\n" {
		t.Errorf("the limit reads %q", got)
	}
}

func TestCgroupNetworkClass(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "net_cls")
	path := demo(b)
	tool(b, "set", "network.classID=0x100001", path).OK(t)
	if got := tool(b, "get", "-n", "-v", "-r", "network.classID", path).OK(t).Stdout; got != "1048577\n" {
		t.Errorf("the class reads %q", got)
	}
}

// disk names a block device of the machine.
func disk(t *testing.T) string {
	t.Helper()
	files, _ := filepath.Glob("/sys/block/*/dev")
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	harness.Skip(t, "needs a block device")
	return ""
}

func TestCgroupThrottleOfDevice(t *testing.T) {
	b := harness.New(t)
	name := "blkio"
	for _, h := range harness.Hierarchies(t) {
		for _, c := range h.Controllers {
			if h.Unified && c == "io" {
				name = "io"
			}
		}
	}
	harness.Controller(t, name)
	device, path := disk(t), demo(b)
	tool(b, "set", "blockIO.throttleReadBpsDevice="+device+" 1M", path).OK(t)
	if got := fileOf(t, name, path, "blkio.throttle.read_bps_device", "io.max"); !strings.HasPrefix(got, device+" ") || !strings.Contains(got, "1048576") {
		t.Errorf("the file holds %q", got)
	}
	tool(b, "set", "blockIO.throttleReadBpsDevice="+device+" max", path).OK(t)
	if got := fileOf(t, name, path, "blkio.throttle.read_bps_device", "io.max"); got != "" {
		t.Errorf("the file holds %q after the limit was taken off", got)
	}
}
