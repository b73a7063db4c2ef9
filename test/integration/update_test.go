package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

// limited starts a container that does nothing, with limits to be changed.
func limited(b *harness.Box, resources specs.LinuxResources) *harness.Container {
	b.T.Helper()
	c := b.Container("/inside", "hang")
	resources.Devices = c.Spec.Linux.Resources.Devices
	c.Spec.Linux.Resources = &resources
	return c.RunDetached()
}

func update(c *harness.Container, args ...string) harness.Result {
	c.Box.T.Helper()
	return c.Command("update", nil, args...).Run()
}

func holds(t *testing.T, c *harness.Container, controller, v1, v2, want1, want2 string) {
	t.Helper()
	want := want1
	if harness.Controller(t, controller).Unified {
		want = want2
	}
	if got := c.CgroupFile(controller, v1, v2); got != want {
		t.Errorf("%s or %s is %q, want %q", v1, v2, got, want)
	}
}

func TestUpdateMemory(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "memory")
	c := limited(b, specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: ptr(int64(64 << 20))}})
	memory := func(want string) {
		t.Helper()
		holds(t, c, "memory", "memory.limit_in_bytes", "memory.max", want, want)
	}
	update(c, "--memory", "32m").OK(t)
	memory("33554432")
	// Options may stand in front of the id too, and raising works as lowering does.
	c.Command("update", []string{"--memory=128M"}).Run().OK(t)
	memory("134217728")
	update(c, "--memory", "-1").OK(t)
	holds(t, c, "memory", "memory.limit_in_bytes", "memory.max", "9223372036854771712", "max")
}

func TestUpdateMemoryReservation(t *testing.T) {
	b := harness.New(t)
	h := harness.Controller(t, "memory")
	c := limited(b, specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: ptr(int64(64 << 20))}})
	if file := filepath.Join(h.Dir, c.Spec.Linux.CgroupsPath, "memory.soft_limit_in_bytes"); !h.Unified {
		if err := os.WriteFile(file, []byte("4194304"), 0); err != nil {
			t.Fatal(err)
		}
		if got := c.CgroupFile("memory", "memory.soft_limit_in_bytes", ""); got != "4194304" {
			harness.Skip(t, "needs soft limits of memory, which kernels without them in cgroup v1 take and forget")
		}
	}
	update(c, "--memory-reservation", "8m").OK(t)
	holds(t, c, "memory", "memory.soft_limit_in_bytes", "memory.low", "8388608", "8388608")
	holds(t, c, "memory", "memory.limit_in_bytes", "memory.max", "67108864", "67108864")
}

// Memory and swap limit each other on cgroup v1, so that one order of the writes or the other is
// refused.
func TestUpdateMemoryAndSwap(t *testing.T) {
	b := harness.New(t)
	h := harness.Controller(t, "memory")
	harness.NeedFile(t, filepath.Join(h.Dir, "*", map[bool]string{false: "memory.memsw.limit_in_bytes", true: "memory.swap.max"}[h.Unified]), "swap accounting")
	c := limited(b, specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: ptr(int64(64 << 20)), Swap: ptr(int64(64 << 20))}})
	for _, step := range []struct{ memory, swap int64 }{{128 << 20, 192 << 20}, {16 << 20, 32 << 20}, {256 << 20, 256 << 20}} {
		update(c, "--memory", fmt.Sprint(step.memory), "--memory-swap", fmt.Sprint(step.swap)).OK(t)
		limit := fmt.Sprint(step.memory)
		holds(t, c, "memory", "memory.limit_in_bytes", "memory.max", limit, limit)
		holds(t, c, "memory", "memory.memsw.limit_in_bytes", "memory.swap.max", fmt.Sprint(step.swap), fmt.Sprint(step.swap-step.memory))
	}
}

// A quota or a period alone leaves the other as it is.
func TestUpdateCPUBandwidth(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "cpu")
	c := limited(b, specs.LinuxResources{CPU: &specs.LinuxCPU{Quota: ptr(int64(40000)), Period: ptr(uint64(80000))}})
	if _, err := os.Stat(filepath.Join(harness.Controller(t, "cpu").Dir, c.Spec.Linux.CgroupsPath, "cpu.stat")); err != nil {
		t.Fatal(err)
	}
	bandwidth := func(quota, period string) {
		t.Helper()
		if harness.Controller(t, "cpu").Unified {
			holds(t, c, "cpu", "", "cpu.max", "", strings.Replace(quota, "-1", "max", 1)+" "+period)
			return
		}
		holds(t, c, "cpu", "cpu.cfs_quota_us", "", quota, "")
		holds(t, c, "cpu", "cpu.cfs_period_us", "", period, "")
	}
	bandwidth("40000", "80000")
	update(c, "--cpu-quota", "20000").OK(t)
	bandwidth("20000", "80000")
	update(c, "--cpu-period", "50000").OK(t)
	bandwidth("20000", "50000")
	update(c, "--cpu-quota", "-1").OK(t)
	bandwidth("-1", "50000")
	update(c, "--cpu-share", "512").OK(t)
	holds(t, c, "cpu", "cpu.shares", "cpu.weight", "512", "59")
}

func TestUpdatePids(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "pids")
	c := limited(b, specs.LinuxResources{Pids: &specs.LinuxPids{Limit: ptr(int64(50))}})
	update(c, "--pids-limit", "20").OK(t)
	holds(t, c, "pids", "pids.max", "pids.max", "20", "20")
	update(c, "--pids-limit", "-1").OK(t)
	holds(t, c, "pids", "pids.max", "pids.max", "max", "max")
}

func TestUpdateCpuset(t *testing.T) {
	b := harness.New(t)
	h := harness.Controller(t, "cpuset")
	c := limited(b, specs.LinuxResources{CPU: &specs.LinuxCPU{Cpus: "0", Mems: "0"}})
	all, err := os.ReadFile(filepath.Join(h.Dir, map[bool]string{false: "cpuset.cpus", true: "cpuset.cpus.effective"}[h.Unified]))
	if err != nil {
		t.Fatal(err)
	}
	list := strings.TrimSpace(string(all))
	update(c, "--cpuset-cpus", list).OK(t)
	holds(t, c, "cpuset", "cpuset.cpus", "cpuset.cpus", list, list)
	update(c, "--cpuset-cpus", "0", "--cpuset-mems", "0").OK(t)
	holds(t, c, "cpuset", "cpuset.cpus", "cpuset.cpus", "0", "0")
}

func TestUpdateFromFileAndStandardInput(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "memory")
	harness.Controller(t, "pids")
	c := limited(b, specs.LinuxResources{})
	file := b.WriteFile("resources.json", `{"memory": {"limit": 33554432}, "pids": {"limit": 30}, "cpu": {"shares": 0, "quota": 0, "cpus": ""}}`, 0o644)
	update(c, "--resources", file).OK(t)
	holds(t, c, "memory", "memory.limit_in_bytes", "memory.max", "33554432", "33554432")
	holds(t, c, "pids", "pids.max", "pids.max", "30", "30")

	stdin, err := os.Open(b.WriteFile("stdin.json", `{"pids": {"limit": 31}}`, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	cmd := c.Command("update", []string{"--resources=-"})
	cmd.Stdin = stdin
	cmd.Run().OK(t)
	holds(t, c, "pids", "pids.max", "pids.max", "31", "31")
	holds(t, c, "memory", "memory.limit_in_bytes", "memory.max", "33554432", "33554432")
}

// A new list of devices replaces the old one, and what both allow is never cut off.
func TestUpdateDevices(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/bin/sh", "-c", "while :; do head -c1 /dev/zero >/dev/null || echo lost; if [ -e /stop ]; then exit 0; fi; done")
	out, w := b.Pipe()
	c.Stdout = w
	c.Spec.Linux.Devices = []specs.LinuxDevice{{Path: "/dev/probe", Type: "c", Major: 1, Minor: 100}} // there is none: ENXIO for who may open it
	c.RunDetached()
	w.Close()
	open := func() string {
		t.Helper()
		return harness.ParseAttempts(t, c.Exec(nil, "/inside", "try", "open-device=/dev/probe").OK(t).Stdout)["open-device=/dev/probe"].Errno
	}
	if got := open(); got != "EPERM" {
		t.Errorf("before: %s, want EPERM", got)
	}
	const deny = `{"allow": false, "access": "rwm"}`
	for range 20 {
		file := b.WriteFile("allow.json", `{"devices": [`+deny+`, {"allow": true, "type": "c", "major": 1, "minor": 100, "access": "rwm"}]}`, 0o644)
		update(c, "-r", file).OK(t)
		file = b.WriteFile("deny.json", `{"devices": [`+deny+`]}`, 0o644)
		update(c, "-r", file).OK(t)
	}
	if got := open(); got != "EPERM" {
		t.Errorf("denied: %s, want EPERM", got)
	}
	update(c, "-r", b.Path("allow.json")).OK(t)
	if got := open(); got != "ENXIO" {
		t.Errorf("allowed: %s, want ENXIO", got)
	}
	// Limits alone leave the devices as they are.
	update(c, "--pids-limit", "100").OK(t)
	if got := open(); got != "ENXIO" {
		t.Errorf("after another update: %s, want ENXIO", got)
	}
	c.WriteFile("stop", "", 0o644)
	c.WaitExit()
	if text := out.All(); text != "" {
		t.Errorf("/dev/zero or /dev/null was cut off: %q", text)
	}
}

// The container goes on knowing its limits: exec plans it again.
func TestUpdateIsRemembered(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "memory")
	c := limited(b, specs.LinuxResources{Memory: &specs.LinuxMemory{Limit: ptr(int64(64 << 20))}})
	update(c, "--memory", "32m", "--pids-limit", "44").OK(t)
	data, err := os.ReadFile(filepath.Join(b.Root, c.ID, "config.json"))
	if err != nil {
		t.Skip("this engine keeps no config.json in its state: " + err.Error())
	}
	var s specs.Spec
	harness.Decode(t, string(data), &s)
	if r := s.Linux.Resources; *r.Memory.Limit != 32<<20 || *r.Pids.Limit != 44 || len(r.Devices) != len(c.Spec.Linux.Resources.Devices) {
		t.Errorf("remembered: %+v", r)
	}
	if s.Hostname != c.Spec.Hostname || len(s.Mounts) != len(c.Spec.Mounts) || s.Process.Args[1] != "hang" {
		t.Errorf("the rest of the config is another: %+v", s)
	}
	c.Exec(nil, "/bin/true").OK(t)
}

// A new limit below what is used: the kernel makes room, or checkBeforeUpdate refuses.
func TestUpdateBelowTheUse(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "memory")
	c := b.Container("/bin/sh", "-c", "head -c 50000000 /dev/zero > /dev/shm/fill; echo full; exec sleep 100000")
	for i := range c.Spec.Mounts {
		if m := &c.Spec.Mounts[i]; m.Destination == "/dev/shm" {
			m.Options = []string{"size=64m"}
		}
	}
	out, w := b.Pipe()
	c.Stdout = w
	c.RunDetached()
	w.Close()
	out.Until("full\n")

	use, err := strconv.Atoi(c.CgroupFile("memory", "memory.usage_in_bytes", "memory.current"))
	if err != nil || use < 40<<20 {
		t.Fatalf("the container uses %d bytes (%v), the test wants more", use, err)
	}
	file := b.WriteFile("checked.json", `{"memory": {"limit": 8388608, "checkBeforeUpdate": true}}`, 0o644)
	update(c, "-r", file).Fails(t, file+": /memory/limit: ", "uses")
	if got := c.CgroupFile("memory", "memory.limit_in_bytes", "memory.max"); got == "8388608" {
		t.Error("the limit was set although that was refused")
	}
	if state := c.State(); state.Status != "running" {
		t.Errorf("the container is %s", state.Status)
	}
}

func TestUpdateStates(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "pids")
	b.Berth("update", "--pids-limit", "5", "nobody").Fails(t, "container does not exist")

	created := b.Container("/bin/true").Create()
	update(created, "--pids-limit", "33").OK(t)
	holds(t, created, "pids", "pids.max", "pids.max", "33", "33")
	created.Start()
	created.WaitExit()
	update(created, "--pids-limit", "5").Fails(t, "container not running")

	paused := limited(b, specs.LinuxResources{})
	paused.Command("pause", nil).Run().OK(t)
	update(paused, "--pids-limit", "34").OK(t)
	holds(t, paused, "pids", "pids.max", "pids.max", "34", "34")
	if s := paused.State(); s.Status != "paused" {
		t.Errorf("after an update the paused container is %s", s.Status)
	}
	paused.Command("resume", nil).Run().OK(t)
}

func TestUpdateRefusals(t *testing.T) {
	b := harness.New(t)
	c := limited(b, specs.LinuxResources{})
	for _, test := range []struct {
		args  []string
		words []string
	}{
		{[]string{"--memory", "lots"}, []string{"--memory", "lots"}},
		{[]string{"--memory", "64m", "--memory-swap", "32m"}, []string{"--memory-swap"}},
		{[]string{"--cpu-period", "10"}, []string{"--cpu-period", "1000"}},
		{[]string{"--cpuset-cpus", "three"}, []string{"--cpuset-cpus", "three"}},
		{[]string{"--blkio-weight", "5"}, []string{"--blkio-weight", "10"}},
		{[]string{"--resources", "/nonexistent"}, []string{"/nonexistent", "no such file"}},
		{[]string{"-r", b.WriteFile("broken.json", `{"memory":`, 0o644)}, []string{"broken.json"}},
		{[]string{"-r", b.WriteFile("wrong.json", `{"memory": {"limit": "1m"}}`, 0o644)}, []string{"wrong.json: /memory/limit: ", "integer"}},
		{[]string{"--l3-cache-schema", "L3:0=f"}, []string{"resctrl"}},
	} {
		update(c, test.args...).Fails(t, test.words...)
	}
}

// A refused update changes nothing, whichever of its limits is refused: neither the files, nor what
// later updates and exec take from the config.
func TestUpdateRefusedIsTakenBack(t *testing.T) {
	b := harness.New(t)
	for _, controller := range []string{"memory", "cpu", "cpuset", "pids"} {
		harness.Controller(t, controller)
	}
	c := limited(b, specs.LinuxResources{
		Memory: &specs.LinuxMemory{Limit: ptr(int64(64 << 20))}, Pids: &specs.LinuxPids{Limit: ptr(int64(50))},
		CPU: &specs.LinuxCPU{Shares: ptr(uint64(512)), Quota: ptr(int64(50000)), Period: ptr(uint64(100000)), Cpus: "0"},
	})
	same := func() {
		t.Helper()
		holds(t, c, "memory", "memory.limit_in_bytes", "memory.max", "67108864", "67108864")
		holds(t, c, "pids", "pids.max", "pids.max", "50", "50")
		holds(t, c, "cpuset", "cpuset.cpus", "cpuset.cpus", "0", "0")
		holds(t, c, "cpu", "cpu.shares", "cpu.weight", "512", "59")
		if harness.Controller(t, "cpu").Unified {
			holds(t, c, "cpu", "", "cpu.max", "", "50000 100000")
		} else {
			holds(t, c, "cpu", "cpu.cfs_quota_us", "", "50000", "")
		}
	}
	change := []string{"--memory", "128m", "--pids-limit", "7", "--cpu-share", "2048", "--cpu-quota", "20000"}
	update(c, append(change, "--cpuset-cpus", "8190")...).Fails(t, "--cpuset-cpus: ", "8190")
	same()
	update(c, append(change, "--cpuset-mems", "1023")...).Fails(t, "--cpuset-mems: ", "1023")
	same()
	file := b.WriteFile("resources.json", `{"memory": {"limit": 134217728}, "pids": {"limit": 7}, "cpu": {"shares": 2048, "quota": 20000},
		"blockIO": {"throttleReadBpsDevice": [{"major": 4095, "minor": 77, "rate": 1048576}]}}`, 0o644)
	update(c, "--resources", file).Fails(t, file+": /blockIO/throttleReadBpsDevice/0")
	same()
	// What was refused is not remembered either.
	update(c, "--pids-limit", "40").OK(t)
	holds(t, c, "memory", "memory.limit_in_bytes", "memory.max", "67108864", "67108864")
	holds(t, c, "pids", "pids.max", "pids.max", "40", "40")
}

// What the kernel refuses when a container is created is named by its whole pointer, as a search
// would have it.
func TestRefusedLimitHasItsWholePointer(t *testing.T) {
	b := harness.New(t)
	harness.Controller(t, "cpuset")
	c := b.Container("/bin/true")
	c.Spec.Linux.Resources.CPU = &specs.LinuxCPU{Cpus: "8190"}
	c.Run().Fails(t, "config.json: /linux/resources/cpu/cpus: ", "8190")
}
