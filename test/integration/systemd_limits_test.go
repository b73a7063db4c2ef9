package integration

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cgroup/ledger"
	"github.com/berth-runtime/berth/internal/test/wait"
	"github.com/berth-runtime/berth/test/harness"
)

// A unitRow is one row of the driver's tables: a resource, and where it has to be found.
type unitRow struct {
	name      string // as the table has it
	field     string // of the ledger
	resources string
	property  string // what systemctl show calls it
	shown     string
	// controller and file are of the version that the table is for; want is what the file has.
	controller, file, want string
}

var v2Rows = []unitRow{
	{"memory.limit", "/memory/limit", `{"memory":{"limit":67108864}}`, "MemoryMax", "67108864", "memory", "memory.max", "67108864"},
	{"memory.reservation", "/memory/reservation", `{"memory":{"reservation":33554432}}`, "MemoryLow", "33554432", "memory", "memory.low", "33554432"},
	{"memory.swap", "/memory/swap", `{"memory":{"limit":67108864,"swap":100663296}}`, "MemorySwapMax", "33554432", "memory", "memory.swap.max", "33554432"},
	{"cpu.shares", "/cpu/shares", `{"cpu":{"shares":2048}}`, "CPUWeight", "174", "cpu", "cpu.weight", "174"},
	{"pids.limit", "/pids/limit", `{"pids":{"limit":77}}`, "TasksMax", "77", "pids", "pids.max", "77"},
	{"cpu.cpus", "/cpu/cpus", `{"cpu":{"cpus":"0"}}`, "AllowedCPUs", "0", "cpuset", "cpuset.cpus", "0"},
	{"cpu.mems", "/cpu/mems", `{"cpu":{"mems":"0"}}`, "AllowedMemoryNodes", "0", "cpuset", "cpuset.mems", "0"},
	{"unified.cpu.max quota", "/unified/cpu.max", `{"unified":{"cpu.max":"50000 200000"}}`, "CPUQuotaPerSecUSec", "250ms", "cpu", "cpu.max", "50000 200000"},
	{"unified.cpu.max period", "/unified/cpu.max", `{"unified":{"cpu.max":"50000 200000"}}`, "CPUQuotaPeriodUSec", "200ms", "cpu", "cpu.max", "50000 200000"},
	{"unified.cpu.weight", "/unified/cpu.weight", `{"unified":{"cpu.weight":"50"}}`, "CPUWeight", "50", "cpu", "cpu.weight", "50"},
	{"unified.cpu.idle", "/unified/cpu.idle", `{"unified":{"cpu.idle":"1"}}`, "CPUWeight", "idle", "cpu", "cpu.idle", "1"},
	{"unified.cpuset.cpus", "/unified/cpuset.cpus", `{"unified":{"cpuset.cpus":"0"}}`, "AllowedCPUs", "0", "cpuset", "cpuset.cpus", "0"},
	{"unified.cpuset.mems", "/unified/cpuset.mems", `{"unified":{"cpuset.mems":"0"}}`, "AllowedMemoryNodes", "0", "cpuset", "cpuset.mems", "0"},
	{"unified.memory.high", "/unified/memory.high", `{"unified":{"memory.high":"67108864"}}`, "MemoryHigh", "67108864", "memory", "memory.high", "67108864"},
	{"unified.memory.low", "/unified/memory.low", `{"unified":{"memory.low":"33554432"}}`, "MemoryLow", "33554432", "memory", "memory.low", "33554432"},
	{"unified.memory.min", "/unified/memory.min", `{"unified":{"memory.min":"16777216"}}`, "MemoryMin", "16777216", "memory", "memory.min", "16777216"},
	{"unified.memory.max", "/unified/memory.max", `{"unified":{"memory.max":"67108864"}}`, "MemoryMax", "67108864", "memory", "memory.max", "67108864"},
	{"unified.memory.swap.max", "/unified/memory.swap.max", `{"unified":{"memory.swap.max":"33554432"}}`, "MemorySwapMax", "33554432", "memory", "memory.swap.max", "33554432"},
	{"unified.pids.max", "/unified/pids.max", `{"unified":{"pids.max":"78"}}`, "TasksMax", "78", "pids", "pids.max", "78"},
}

// v2MoreRows are properties that systemd has got since the driver's tables were written. DISK is
// the one that has the root directory.
var v2MoreRows = []unitRow{
	{"blockIO.weight", "/blockIO/weight", `{"blockIO":{"weight":500}}`, "IOWeight", "4950", "io", "io.weight", "default 4950"},
	{"blockIO.throttleReadBpsDevice", "/blockIO/throttleReadBpsDevice/*", `{"blockIO":{"throttleReadBpsDevice":[{"major":MAJOR,"minor":MINOR,"rate":5000}]}}`, "IOReadBandwidthMax", "/dev/block/DISK 5000", "io", "io.max", "DISK rbps=5000 wbps=max riops=max wiops=max"},
	{"blockIO.throttleWriteBpsDevice", "/blockIO/throttleWriteBpsDevice/*", `{"blockIO":{"throttleWriteBpsDevice":[{"major":MAJOR,"minor":MINOR,"rate":5000}]}}`, "IOWriteBandwidthMax", "/dev/block/DISK 5000", "io", "io.max", "DISK rbps=max wbps=5000 riops=max wiops=max"},
	{"blockIO.throttleReadIOPSDevice", "/blockIO/throttleReadIOPSDevice/*", `{"blockIO":{"throttleReadIOPSDevice":[{"major":MAJOR,"minor":MINOR,"rate":5000}]}}`, "IOReadIOPSMax", "/dev/block/DISK 5000", "io", "io.max", "DISK rbps=max wbps=max riops=5000 wiops=max"},
	{"blockIO.throttleWriteIOPSDevice", "/blockIO/throttleWriteIOPSDevice/*", `{"blockIO":{"throttleWriteIOPSDevice":[{"major":MAJOR,"minor":MINOR,"rate":5000}]}}`, "IOWriteIOPSMax", "/dev/block/DISK 5000", "io", "io.max", "DISK rbps=max wbps=max riops=max wiops=5000"},
	{"unified.memory.zswap.max", "/unified/memory.zswap.max", `{"unified":{"memory.zswap.max":"33554432"}}`, "MemoryZSwapMax", "33554432", "memory", "memory.zswap.max", "33554432"},
	{"unified.memory.oom.group", "/unified/memory.oom.group", `{"unified":{"memory.oom.group":"1"}}`, "OOMPolicy", "kill", "memory", "memory.oom.group", "1"},
}

var v1Rows = []unitRow{
	{"memory.limit", "/memory/limit", `{"memory":{"limit":67108864}}`, "MemoryLimit", "67108864", "memory", "memory.limit_in_bytes", "67108864"},
	{"cpu.shares", "/cpu/shares", `{"cpu":{"shares":2048}}`, "CPUShares", "2048", "cpu", "cpu.shares", "2048"},
	{"blockIO.weight", "/blockIO/weight", `{"blockIO":{"weight":500}}`, "BlockIOWeight", "500", "blkio", "blkio.bfq.weight", "500"},
	{"pids.limit", "/pids/limit", `{"pids":{"limit":77}}`, "TasksMax", "77", "pids", "pids.max", "77"},
	{"cpu.cpus", "/cpu/cpus", `{"cpu":{"cpus":"0"}}`, "AllowedCPUs", "0", "cpuset", "cpuset.cpus", "0"},
	{"cpu.mems", "/cpu/mems", `{"cpu":{"mems":"0"}}`, "AllowedMemoryNodes", "0", "cpuset", "cpuset.mems", "0"},
}

// Every row of the two tables: systemd has the property, the cgroup has the value, and both are
// what the ledger says.
func TestUnitLimits(t *testing.T) {
	b := withSystemd(t)
	rows, place := v1Rows, func(e ledger.Entry) ledger.Place { return e.V1 }
	if onV2(t) {
		rows, place = append(v2Rows[:len(v2Rows):len(v2Rows)], v2MoreRows...), func(e ledger.Entry) ledger.Place { return e.V2 }
	} else if os.Geteuid() != 0 {
		harness.Skip(t, "needs cgroup v2: an ordinary user has no limits on v1")
	}
	table, version := ledger.Table(), systemdVersion(t)
	var root unix.Stat_t
	must(t, unix.Stat("/", &root))
	major, minor := strconv.Itoa(int(unix.Major(root.Dev))), strconv.Itoa(int(unix.Minor(root.Dev)))
	disk := strings.NewReplacer("MAJOR", major, "MINOR", minor, "DISK", major+":"+minor)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			if strings.Contains(row.want, "DISK") && major == "0" {
				harness.Skip(t, "needs a root folder on a disk")
			}
			row.resources, row.shown, row.want = disk.Replace(row.resources), disk.Replace(row.shown), disk.Replace(row.want)
			i := slices.IndexFunc(table, func(e ledger.Entry) bool { return e.Field == row.field })
			if i < 0 {
				t.Fatalf("the ledger has no %s", row.field)
			}
			in := place(table[i])
			if !slices.Contains(in.Files, row.file) {
				t.Errorf("the ledger has the files %v", in.Files)
			}
			p := slices.IndexFunc(in.Properties, func(p ledger.UnitProperty) bool { return p.Name == row.property })
			if p < 0 {
				t.Fatalf("the ledger has the properties %v", in.Properties)
			}
			c, unit := unitContainer(b, "/inside", "hang")
			if err := json.Unmarshal([]byte(row.resources), c.Spec.Linux.Resources); err != nil {
				t.Fatal(err)
			}
			c.RunDetached()
			if got := property(t, unit, row.property); version >= in.Properties[p].Since && got != row.shown {
				t.Errorf("%s is %q, want %q", row.property, got, row.shown)
			}
			if got := unitFile(t, unit, row.controller, row.file, row.file); got != row.want {
				t.Errorf("%s is %q, want %q", row.file, got, row.want)
			}
			// A kubelet says all of it again with each change.
			c.Command("update", []string{"--resources", b.WriteFile("again.json", row.resources, 0o644)}).Run().OK(t)
			if got := unitFile(t, unit, row.controller, row.file, row.file); got != row.want {
				t.Errorf("%s is %q when that was said again, want %q", row.file, got, row.want)
			}
			c.Kill("KILL").WaitExit()
			c.Delete()
			gone(t, unit)
		})
	}
}

// systemd keeps whole percents of a processor. Another quota is rounded up before the file has it,
// so that a reload changes nothing, and this is said.
func TestUnitQuotaInPercents(t *testing.T) {
	b := withSystemd(t)
	needV2(t)
	c, unit := unitContainer(b, "/inside", "hang")
	c.Spec.Linux.Resources.CPU = &specs.LinuxCPU{Quota: ptr(int64(33333)), Period: ptr(uint64(100000))}
	if r := c.TryRunDetached().OK(t); !strings.Contains(r.Stderr, "/linux/resources/cpu/quota") || !strings.Contains(r.Stderr, "34000") {
		t.Errorf("nothing is said of the quota: %q", r.Stderr)
	}
	for _, when := range []string{"at first", "after a reload"} {
		if got := property(t, unit, "CPUQuotaPerSecUSec"); got != "340ms" {
			t.Errorf("%s: CPUQuotaPerSecUSec is %s", when, got)
		}
		if got := unitFile(t, unit, "cpu", "", "cpu.max"); got != "34000 100000" {
			t.Errorf("%s: cpu.max is %s", when, got)
		}
		systemctl(t, "daemon-reload")
	}
}

// Accounting is on without any limit, and a unit is where it belongs.
func TestUnitWithoutLimits(t *testing.T) {
	b := withSystemd(t)
	c, unit := unitContainer(b, "/inside", "hang")
	c.Spec.Linux.Resources = nil
	c.RunDetached()
	slice, io := "machine.slice", "BlockIOAccounting"
	if onV2(t) {
		io = "IOAccounting"
	}
	if os.Geteuid() != 0 {
		slice = "user.slice"
	}
	for name, want := range map[string]string{
		"CPUAccounting": "yes", io: "yes", "MemoryAccounting": "yes", "TasksAccounting": "yes",
		"Slice": slice, "Delegate": "yes", "ActiveState": "active", "Transient": "yes",
	} {
		if got := property(t, unit, name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	c.Kill("KILL").WaitExit()
	// Its scope goes with it; delete only makes systemd forget that it was killed.
	wait.Until(t, "the unit is not active any more", func() bool { return property(t, unit, "ActiveState") != "active" })
	c.Delete()
	gone(t, unit)
}

// What systemd was told, it does again at each reload: limits hold, also those that were changed
// since, and devices can be used and not used as before.
func TestUnitAfterReload(t *testing.T) {
	b := withSystemd(t)
	if os.Geteuid() != 0 && !onV2(t) {
		harness.Skip(t, "needs cgroup v2: an ordinary user has no limits on v1")
	}
	c, unit := unitContainer(b, "/inside", "hang")
	// Only root has devices to limit.
	root := os.Geteuid() == 0
	if root {
		c.Spec.Linux.Devices = []specs.LinuxDevice{
			{Path: "/dev/fuse", Type: "c", Major: 10, Minor: 229, FileMode: ptr(os.FileMode(0o600))},
			{Path: "/dev/loop-control", Type: "c", Major: 10, Minor: 237, FileMode: ptr(os.FileMode(0o600))},
		}
		c.Spec.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{
			{Allow: false, Access: "rwm"}, {Allow: true, Type: "c", Major: ptr(int64(10)), Minor: ptr(int64(229)), Access: "rw"},
		}
	}
	c.Spec.Linux.Resources.Memory = &specs.LinuxMemory{Limit: ptr(int64(64 << 20))}
	c.Spec.Linux.Resources.CPU = &specs.LinuxCPU{Shares: ptr(uint64(512)), Quota: ptr(int64(50000)), Period: ptr(uint64(100000)), Cpus: "0"}
	c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: ptr(int64(90))}
	c.RunDetached()
	files := []unitRow{
		{controller: "memory", file: "memory.limit_in_bytes", want: "memory.max"},
		{controller: "cpu", file: "cpu.shares", want: "cpu.weight"},
		{controller: "cpu", file: "cpu.cfs_quota_us", want: "cpu.max"},
		{controller: "cpuset", file: "cpuset.cpus", want: "cpuset.cpus"},
		{controller: "pids", file: "pids.max", want: "pids.max"},
	}
	look := func() string {
		var all []string
		for _, f := range files {
			all = append(all, f.want+"="+unitFile(t, unit, f.controller, f.file, f.want))
		}
		if root {
			tried := harness.ParseAttempts(t, c.Exec(nil, "/inside", "try", "open-device=/dev/fuse", "open-device=/dev/loop-control", "open-device=/dev/null").OK(t).Stdout)
			for _, device := range []string{"open-device=/dev/fuse", "open-device=/dev/loop-control", "open-device=/dev/null"} {
				all = append(all, device+":"+tried[device].Errno)
			}
		}
		return strings.Join(all, "\n")
	}
	before := look()
	if root {
		// By number, and by the names of drivers in /proc/devices where a rule is for all minors.
		allowed := property(t, unit, "DeviceAllow")
		for _, want := range []string{"/dev/char/10:229 rw", "char-pts rw"} {
			if !strings.Contains(allowed, want) {
				t.Errorf("no %s in DeviceAllow=%s", want, allowed)
			}
		}
	}
	// A device without a driver is another matter.
	if root && (strings.Contains(before, "fuse:EPERM") || !strings.Contains(before, "loop-control:EPERM") || !strings.Contains(before, "null:")) {
		t.Errorf("devices: %s", before)
	}
	systemctl(t, "daemon-reload")
	if after := look(); after != before {
		t.Errorf("before the reload\n%s\nafter it\n%s", before, after)
	}
	c.Command("update", []string{"--memory", "134217728", "--pids-limit", "91", "--cpu-quota", "25000"}).Run().OK(t)
	updated := look()
	for _, want := range []string{"memory.max=134217728", "pids.max=91"} {
		if !strings.Contains(updated, want) {
			t.Errorf("after the update: no %s in\n%s", want, updated)
		}
	}
	if !strings.Contains(updated, "cpu.max=25000") {
		t.Errorf("after the update the quota is not 25000:\n%s", updated)
	}
	systemctl(t, "daemon-reload")
	if after := look(); after != updated {
		t.Errorf("before the second reload\n%s\nafter it\n%s", updated, after)
	}
	if !root {
		return
	}
	// The other way round.
	rules := b.WriteFile("rules.json", `{"devices":[{"allow":false,"access":"rwm"},{"allow":true,"type":"c","major":10,"minor":237,"access":"rw"}]}`, 0o644)
	c.Command("update", []string{"--resources", rules}).Run().OK(t)
	updated = look()
	if !strings.Contains(updated, "fuse:EPERM") || strings.Contains(updated, "loop-control:EPERM") || !strings.Contains(updated, "null:\n") && !strings.HasSuffix(updated, "null:") {
		t.Errorf("devices after the update: %s", updated)
	}
	systemctl(t, "daemon-reload")
	if after := look(); after != updated {
		t.Errorf("before the third reload\n%s\nafter it\n%s", updated, after)
	}
}

// A container that uses a device all the time never finds it denied, however often its other limits
// are changed: systemd denies all devices of a unit on v1, and then allows those of its list again,
// each time that it is told anything of devices.
func TestUnitUpdateWhileDevicesAreUsed(t *testing.T) {
	b := systemdAsRoot(t)
	// A shell ends where the input of one of its own commands can't be opened.
	c, _ := unitContainer(b, "/bin/sh", "-c", "while :; do : < /dev/null; done")
	c.Spec.Linux.Resources.Devices = []specs.LinuxDeviceCgroup{{Allow: false, Access: "rwm"}}
	c.RunDetached()
	for n := range 10 {
		c.Command("update", []string{"--pids-limit", strconv.Itoa(100 + n), "--memory", strconv.Itoa((64 + n) << 20)}).Run().OK(t)
	}
	if onV2(t) {
		systemctl(t, "daemon-reload")
	}
	if got := c.State().Status; got != "running" {
		t.Errorf("the container is %s", got)
	}
}

// A container of one process is made, though some need a second one for it, and systemd begins its
// unit with the limit. It holds when the container is ready.
func TestUnitOfOneProcess(t *testing.T) {
	for _, mapped := range []bool{false, true} {
		b := withSystemd(t)
		// A program in Go has threads, which count.
		c, unit := unitContainer(b, "/bin/sh", "-c", "exec sleep 100000")
		if mapped && os.Geteuid() == 0 {
			harness.UserNamespace(c.Spec)
		}
		c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: ptr(int64(1))}
		c.RunDetached()
		if got := unitFile(t, unit, "pids", "pids.max", "pids.max"); got != "1" {
			t.Errorf("mapped %v: pids.max is %q", mapped, got)
		}
	}
}
