package cgroup

import (
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

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// The limits bite: what they forbid is tried, here and in the files of cpu, memory and blockio.

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
		t.Skip("what ordinary users may write to at all is their own")
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
