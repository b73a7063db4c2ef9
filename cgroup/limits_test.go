package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// The limits of this file bite: what they forbid is tried.

func set(t testing.TB, g *Group, resources *specs.LinuxResources) Report {
	t.Helper()
	report, err := g.Set(resources)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// run plays a role in the group to its end.
func run(t testing.TB, g *Group, role string) (string, *os.ProcessState) {
	t.Helper()
	cmd := roleCommand(role)
	var out strings.Builder
	cmd.Stdout = &out
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	return out.String(), cmd.ProcessState
}

func readFileOf(t testing.TB, g *Group, controller, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.Directory(controller), file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

func TestMemoryLimitKills(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "memory")
	g := makeGroup(t, host)
	limit := int64(32 << 20)
	set(t, g, &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, Swap: &limit}})
	if _, state := run(t, g, "eat:8"); !state.Success() {
		t.Errorf("8 MiB under a limit of 32: %v", state)
	}
	_, state := run(t, g, "eat:64")
	if status := state.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("64 MiB under a limit of 32: %v", state)
	}
}

func TestMemoryRoundingIsReported(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "memory")
	g := makeGroup(t, host)
	limit := int64(32<<20 + 100)
	report := set(t, g, &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit}})
	if len(report.Differences) != 1 || report.Differences[0].Holds != strconv.Itoa(32<<20) || report.Differences[0].Pointer != "/memory/limit" {
		t.Errorf("differences %v", report.Differences)
	}
}

func TestLowerAndRaiseMemory(t *testing.T) {
	host := hostForTest(t)
	h := need(t, host, "memory")
	g := makeGroup(t, host)
	// Each step crosses the other value of the step before.
	for _, mib := range []int64{64, 256, 32, 128} {
		limit := mib << 20
		swap := 2 * limit
		set(t, g, &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, Swap: &swap}})
		file := "memory.limit_in_bytes"
		if h.Version == 2 {
			file = "memory.max"
		}
		if got := readFileOf(t, g, "memory", file); got != strconv.FormatInt(limit, 10) {
			t.Errorf("the limit is %s, want %d", got, limit)
		}
	}
}

// Lowered below the use, files are given up before anybody is killed, and
// memory.high is what it was.
func TestLowerMemoryReclaimsFirst(t *testing.T) {
	host := hostForTest(t)
	if h := need(t, host, "memory"); h.Version == 1 {
		t.Skip("version 1 reclaims in the write of the limit")
	}
	g := makeGroup(t, host)
	high := "90000000"
	set(t, g, &specs.LinuxResources{Unified: map[string]string{"memory.high": high}})
	// What is not on the disk yet can't be given up.
	cmd := roleCommand("files:48")
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	if word, err := bufio.NewReader(said).ReadString('\n'); word != "synced\n" {
		t.Fatalf("it said %q, %v", word, err)
	}
	limit := int64(24 << 20)
	report := set(t, g, &specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit}})
	if len(report.Differences) > 0 {
		t.Errorf("differences %v", report.Differences)
	}
	if got := readFileOf(t, g, "memory", "memory.max"); got != strconv.FormatInt(limit, 10) {
		t.Errorf("memory.max is %s", got)
	}
	if got := readFileOf(t, g, "memory", "memory.high"); got != "89997312" {
		t.Errorf("memory.high is %s, was %s", got, high)
	}
	stats, err := g.Stats(Memory)
	if err != nil {
		t.Fatal(err)
	}
	num(t, "kills", stats.Memory.Events.OOMKill, 0)
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the process: %v", err)
	}
}

// The engine's writes come in the order for a new group. On one that has
// limits, Apply turns pairs around itself.
func TestApplyTurnsPairsAround(t *testing.T) {
	host := hostForTest(t)
	if h := need(t, host, "memory"); h.Version == 2 {
		t.Skip("version 2 has no such pairs")
	}
	g := makeGroup(t, host)
	for _, mib := range []int64{64, 256, 32, 128} {
		limit := mib << 20
		swap := limit
		writes, _, err := ledger.Translate(&specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, Swap: &swap}},
			host.Layout(), ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := g.Apply(writes); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(writes)
		if _, err := g.Apply(writes); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCheckBeforeUpdate(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "memory")
	g := makeGroup(t, host)
	start(t, g, "hold:32")
	waitForUse(t, g, 32<<20)
	limit, check := int64(4<<20), true
	_, err := g.Set(&specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, CheckBeforeUpdate: &check}})
	var fields ledger.Errors
	if !errors.As(err, &fields) || fields[0].Pointer != "/memory/limit" || !strings.Contains(err.Error(), "uses") {
		t.Errorf("got %v", err)
	}
}

// A version 1 limit that cannot be reached is refused with the present use.
func TestRefusedLimitNamesUse(t *testing.T) {
	host := hostForTest(t)
	if h := need(t, host, "memory"); h.Version == 2 {
		t.Skip("version 2 kills instead")
	}
	g := makeGroup(t, host)
	start(t, g, "hold:32")
	waitForUse(t, g, 32<<20)
	limit := int64(4 << 20)
	_, err := g.Set(&specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: &limit, Swap: &limit}})
	if !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "bytes now") {
		t.Errorf("got %v", err)
	}
}

func waitForUse(t testing.TB, g *Group, bytes uint64) {
	t.Helper()
	n := g.node("memory")
	file := "memory.usage_in_bytes"
	if n.Version == 2 {
		file = "memory.current"
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		if use, _ := g.number(n, file); use >= bytes {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the memory is not used")
		}
	}
}

func TestPidsLimitRefuses(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "pids")
	g := makeGroup(t, host)
	limit := int64(24)
	set(t, g, &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &limit}})
	out, _ := run(t, g, "fork:60")
	made, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil || made >= 24 || made == 0 {
		t.Errorf("it made %q processes under a limit of 24", out)
	}
}

func TestQuotaThrottles(t *testing.T) {
	host := hostForTest(t)
	h := need(t, host, "cpu")
	g := makeGroup(t, host)
	// So little that a busy machine gives it that much, too.
	quota, period := int64(1000), uint64(100000)
	set(t, g, &specs.LinuxResources{CPU: &specs.LinuxCPU{Quota: &quota, Period: &period}})
	start(t, g, "count")
	deadline := time.Now().Add(30 * time.Second)
	for {
		for key, value := range flatKeyed([]byte(readFileOf(t, g, "cpu", "cpu.stat"))) {
			if key == "nr_throttled" && value > 2 {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("not throttled on version %d: %s", h.Version, readFileOf(t, g, "cpu", "cpu.stat"))
		}
	}
}

// Quota, period and burst, raised and lowered, alone and together, below a
// parent whose share must not be exceeded at any moment.
func TestBandwidthSteps(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "cpu")
	parent := makeGroup(t, host)
	q, p := int64(50000), uint64(100000)
	set(t, parent, &specs.LinuxResources{CPU: &specs.LinuxCPU{Quota: &q, Period: &p}})
	g, err := host.Create(parent.Path() + "/x")
	if err != nil {
		t.Fatal(err)
	}
	defer g.Destroy()
	steps := []struct {
		quota  int64
		period uint64
		burst  int64
	}{{40000, 100000, -1}, {8000, 20000, -1}, {400000, 1000000, -1}, {5000, 0, -1}, {40000, 100000, 20000},
		{10000, 0, 5000}, {0, 50000, -1}, {20000, 0, 20000}, {10000, 20000, 0}}
	for _, step := range steps {
		cpu := &specs.LinuxCPU{}
		if step.quota != 0 {
			cpu.Quota = &step.quota
		}
		if step.period != 0 {
			cpu.Period = &step.period
		}
		if step.burst >= 0 {
			burst := uint64(step.burst)
			cpu.Burst = &burst
			if h := host.Controller("cpu"); h.Version == 1 && !g.hasFile("cpu", "cpu.cfs_burst_us") {
				cpu.Burst = nil
			}
		}
		report, err := g.Set(&specs.LinuxResources{CPU: cpu})
		if err != nil {
			t.Errorf("%+v: %v", step, err)
		}
		if len(report.Differences) > 0 {
			t.Errorf("%+v: %v", step, report.Differences)
		}
	}
}

func TestCpusetBinds(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "cpuset")
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		t.Fatal(err)
	}
	last := -1
	for i := range 1024 {
		if mask.IsSet(i) {
			last = i
		}
	}
	g := makeGroup(t, host)
	set(t, g, &specs.LinuxResources{CPU: &specs.LinuxCPU{Cpus: strconv.Itoa(last)}})
	out, _ := run(t, g, "affinity")
	if strings.TrimSpace(out) != strconv.Itoa(last) {
		t.Errorf("it may use processors %q, want %d", out, last)
	}
	// More than there is.
	_, err := g.Set(&specs.LinuxResources{CPU: &specs.LinuxCPU{Cpus: "0-4000"}})
	if err == nil && host.Controller("cpuset").Version == 1 {
		t.Error("processors that are not there were taken")
	}
	if err != nil && !strings.Contains(err.Error(), "/cpu/cpus: ") {
		t.Errorf("got %v", err)
	}
}

func TestRealtimeGoesUpTheParents(t *testing.T) {
	host := hostForTest(t)
	h := need(t, host, "cpu")
	if _, err := os.Stat(h.Mountpoint + "/cpu.rt_runtime_us"); h.Version == 2 || err != nil {
		t.Skip("this kernel does not divide real-time among groups")
	}
	top := testPath()
	g, err := host.Create(top + "/a/b")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, g) })
	runtime, period := int64(2000), uint64(100000)
	set(t, g, &specs.LinuxResources{CPU: &specs.LinuxCPU{RealtimeRuntime: &runtime, RealtimePeriod: &period}})
	if got := readFileOf(t, g, "cpu", "cpu.rt_runtime_us"); got != "2000" {
		t.Errorf("runtime is %s", got)
	}
	if _, state := run(t, g, "realtime"); !state.Success() {
		t.Errorf("a real-time process: %v", state)
	}
	// A parent that is not ours is not changed, but named.
	child, err := host.Create(g.Path() + "/c")
	if err != nil {
		t.Fatal(err)
	}
	runtime = 50000
	_, err = child.Set(&specs.LinuxResources{CPU: &specs.LinuxCPU{RealtimeRuntime: &runtime, RealtimePeriod: &period}})
	if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "/b/cpu.rt_runtime_us is 2000") {
		t.Errorf("got %v", err)
	}
	if err := child.Destroy(); err != nil {
		t.Error(err)
	}
}

func TestDevicesAreDenied(t *testing.T) {
	host := hostForTest(t)
	for _, only := range []string{"devices", "unified"} {
		t.Run(only, func(t *testing.T) {
			if only == "unified" && host.Unified() == nil {
				t.Skip("no version 2 here")
			}
			if only == "devices" {
				need(t, host, only)
			}
			g := makeGroup(t, host, Only(only))
			null, zero := int64(3), int64(5)
			mem := int64(1)
			deny := specs.LinuxDeviceCgroup{Allow: false, Access: "rwm"}
			allowNull := specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &mem, Minor: &null, Access: "rwm"}
			allowZero := specs.LinuxDeviceCgroup{Allow: true, Type: "c", Major: &mem, Minor: &zero, Access: "rwm"}
			_, err := g.Set(&specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{deny, allowNull}})
			if errors.Is(err, syscall.EPERM) && only == "unified" {
				t.Skipf("BPF is not for us here: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if out, _ := run(t, g, "open:/dev/null"); out != "ok" {
				t.Errorf("/dev/null: %s", out)
			}
			if out, _ := run(t, g, "open:/dev/zero"); out != "operation not permitted" {
				t.Errorf("/dev/zero: %s", out)
			}
			// An update changes what holds, for a program too that replaces ours.
			set(t, g, &specs.LinuxResources{Devices: []specs.LinuxDeviceCgroup{deny, allowZero}})
			if out, _ := run(t, g, "open:/dev/null"); out != "operation not permitted" {
				t.Errorf("/dev/null after the update: %s", out)
			}
			if out, _ := run(t, g, "open:/dev/zero"); out != "ok" {
				t.Errorf("/dev/zero after the update: %s", out)
			}
		})
	}
}

// hugePages makes sure that the pool has some pages of 2 MiB, for the test only.
func hugePages(t *testing.T, want int) {
	t.Helper()
	const pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/"
	text, err := os.ReadFile(pool + "nr_hugepages")
	if err != nil {
		t.Skipf("no huge pages of 2 MiB: %v", err)
	}
	have, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if err := os.WriteFile(pool+"nr_hugepages", []byte(strconv.Itoa(have+want)), 0); err != nil {
		t.Skipf("huge pages cannot be had: %v", err)
	}
	t.Cleanup(func() { os.WriteFile(pool+"nr_hugepages", text, 0) })
	text2, _ := os.ReadFile(pool + "free_hugepages")
	if free, _ := strconv.Atoi(strings.TrimSpace(string(text2))); free < want {
		t.Skipf("the machine gives %d huge pages, %d are needed", free, want)
	}
}

func TestHugetlbLimitBites(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "hugetlb")
	hugePages(t, 4)
	g := makeGroup(t, host)
	if u := host.Unified(); u != nil && host.Controller("hugetlb") == u {
		restoreSubtreeControl(t, u)
	}
	set(t, g, &specs.LinuxResources{HugepageLimits: []specs.LinuxHugepageLimit{{Pagesize: "2MB", Limit: 2 << 21}}})
	if out, state := run(t, g, "huge:2"); out != "ok" {
		t.Errorf("two pages under a limit of two: %s, %v", out, state)
	}
	if out, state := run(t, g, "huge:3"); out == "ok" {
		t.Errorf("three pages under a limit of two: %s, %v", out, state)
	}
}

// restoreSubtreeControl takes back, after the test, what it enables in the root.
func restoreSubtreeControl(t *testing.T, u *Hierarchy) {
	root := node{Hierarchy: u, path: "/"}
	before := subtreeControl(&root, "/", make([]byte, 512))
	t.Cleanup(func() {
		for _, name := range absent(subtreeControl(&root, "/", make([]byte, 512)), before) {
			if err := writeFile(unix.AT_FDCWD, root.full("cgroup.subtree_control"), "-"+name); err != nil {
				t.Errorf("disable %s again: %v", name, err)
			}
		}
	})
}

// loopDevice attaches a file to a free loop device.
func loopDevice(t *testing.T, size int64) (path string, major, minor int64) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no loop devices: %v", err)
	}
	defer control.Close()
	number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		t.Skipf("no free loop device: %v", err)
	}
	path = fmt.Sprintf("/dev/loop%d", number)
	loop, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no loop device: %v", err)
	}
	t.Cleanup(func() {
		unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_CLR_FD, 0)
		loop.Close()
	})
	if err := unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_SET_FD, int(file.Fd())); err != nil {
		t.Skipf("the loop device takes no file: %v", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(loop.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return path, int64(unix.Major(st.Rdev)), int64(unix.Minor(st.Rdev))
}

func TestThrottleOfDirectIO(t *testing.T) {
	host := hostForTest(t)
	if host.Controller("blkio") == nil && host.Controller("io") == nil {
		t.Skip("this host has neither blkio nor io")
	}
	path, major, minor := loopDevice(t, 8<<20)
	g := makeGroup(t, host)
	device := specs.LinuxThrottleDevice{Rate: 1 << 20}
	device.Major, device.Minor = major, minor
	_, err := g.Set(&specs.LinuxResources{BlockIO: &specs.LinuxBlockIO{ThrottleReadBpsDevice: []specs.LinuxThrottleDevice{device}}})
	if err != nil {
		t.Fatal(err)
	}
	cmd := roleCommand("read:" + path)
	begin := time.Now()
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	// 3 MiB at 1 MiB/s; some of the first second may come at once.
	if took := time.Since(begin); took < 1500*time.Millisecond {
		t.Errorf("3 MiB at 1 MiB a second took %v", took)
	}
}

// What cannot be had is refused with its reason, and nothing is changed.
func TestSetRefuses(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "pids")
	g := makeGroup(t, host)
	limit := int64(10)
	_, err := g.Set(&specs.LinuxResources{
		Pids:    &specs.LinuxPids{Limit: &limit},
		Devices: []specs.LinuxDeviceCgroup{{Allow: true, Type: "x"}},
		Unified: map[string]string{"nonsense.max": "1"},
	})
	var fields ledger.Errors
	if !errors.As(err, &fields) || len(fields) != 2 {
		t.Errorf("got %v", err)
	}
	if got := readFileOf(t, g, "pids", "pids.max"); got != "max" {
		t.Errorf("pids.max became %s", got)
	}
}

func TestSetOfForeignGroup(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "pids")
	g := makeGroup(t, host)
	limit := int64(10)
	resources := &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: &limit}}
	other, err := host.Open(g.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if !host.privileged() {
		t.Skip("what an ordinary user may write to at all is his own")
	}
	if _, err := other.Set(resources); !errors.Is(err, ErrNotOwner) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
	forced, err := host.Open(g.Path(), Force())
	if err != nil {
		t.Fatal(err)
	}
	defer forced.Close()
	if _, err := forced.Set(resources); err != nil {
		t.Error(err)
	}
}

func TestNetClassReadsBack(t *testing.T) {
	host := hostForTest(t)
	need(t, host, "net_cls")
	g := makeGroup(t, host)
	class := uint32(0x100001)
	set(t, g, &specs.LinuxResources{Network: &specs.LinuxNetwork{ClassID: &class}})
	if got := readFileOf(t, g, "net_cls", "net_cls.classid"); got != "1048577" {
		t.Errorf("class %s", got)
	}
}

func init() {
	// The roles of this file.
	roles["eat"] = func(argument string) {
		mib, _ := strconv.Atoi(argument)
		block := make([]byte, mib<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
	}
	roles["hold"] = func(argument string) {
		roles["eat"](argument)
		mib, _ := strconv.Atoi(argument)
		block, _ := unix.Mmap(-1, 0, mib<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
		unix.Mlock(block)
		for {
			syscall.Pause()
		}
	}
	roles["files"] = func(argument string) {
		mib, _ := strconv.Atoi(argument)
		file, err := os.CreateTemp("/var/tmp", "berth-test-")
		if err != nil {
			os.Exit(1)
		}
		os.Remove(file.Name())
		for range mib {
			file.Write(make([]byte, 1<<20))
		}
		file.Sync()
		fmt.Println("synced")
		for {
			syscall.Pause()
		}
	}
	roles["fork"] = func(argument string) {
		count, _ := strconv.Atoi(argument)
		made := 0
		for range count {
			cmd := exec.Command("/bin/sleep", "1000")
			if cmd.Start() == nil {
				made++
				defer cmd.Process.Kill()
			}
		}
		fmt.Println(made)
	}
	roles["affinity"] = func(string) {
		var mask unix.CPUSet
		unix.SchedGetaffinity(0, &mask)
		for i := range 1024 {
			if mask.IsSet(i) {
				fmt.Print(i, " ")
			}
		}
	}
	roles["realtime"] = func(string) {
		if _, err := exec.LookPath("chrt"); err != nil {
			return
		}
		if out, err := exec.Command("chrt", "-f", "1", "true").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "chrt: %v: %s", err, out)
			os.Exit(1)
		}
	}
	roles["open"] = func(argument string) {
		fd, err := unix.Open(argument, unix.O_RDWR, 0)
		if err != nil {
			fmt.Print(err)
			return
		}
		unix.Close(fd)
		fmt.Print("ok")
	}
	roles["huge"] = func(argument string) {
		pages, _ := strconv.Atoi(argument)
		block, err := unix.Mmap(-1, 0, pages<<21, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_HUGETLB)
		if err != nil {
			fmt.Print(err)
			return
		}
		for i := 0; i < len(block); i += 1 << 21 {
			block[i] = 1
		}
		fmt.Print("ok")
	}
	roles["read"] = func(argument string) {
		fd, err := unix.Open(argument, unix.O_RDONLY|unix.O_DIRECT, 0)
		if err != nil {
			fmt.Print(err)
			os.Exit(1)
		}
		block, _ := unix.Mmap(-1, 0, 1<<16, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		for range 48 {
			if _, err := unix.Read(fd, block); err != nil {
				fmt.Print(err)
				os.Exit(1)
			}
		}
	}
}
