package plan_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/host"
	"github.com/berth-runtime/berth/engine/plan"
	"github.com/berth-runtime/berth/engine/view"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// forUser makes the host's systemd that of an ordinary user.
func forUser(h *host.Host, controllers ...string) *host.Host {
	h.Systemd.User, h.Systemd.Root, h.Systemd.Controllers = true, "/user.slice/user-1000.slice/user@1000.service", controllers
	return h
}

// unitLines tells a plan's unit as explain does, then what is written to files, then what is warned
// of. The devices that every container has are left out.
func unitLines(p *plan.Plan) []string {
	return slices.DeleteFunc(allUnitLines(p), func(line string) bool {
		return line == "DevicePolicy=strict" || strings.HasPrefix(line, "DeviceAllow=")
	})
}

func allUnitLines(p *plan.Plan) []string {
	var all []string
	for _, s := range view.UnitSteps(p) {
		line := strings.TrimPrefix(s.What, "property ")
		if s.Pointer != "" {
			line += " @" + s.Pointer
		}
		all = append(all, line)
	}
	for _, w := range p.Cgroup.Writes {
		all = append(all, w.File+"="+w.Value)
	}
	for _, w := range p.Warnings {
		all = append(all, "warning: "+w)
	}
	return all
}

func unitPlan(h *host.Host, config string) (*plan.Plan, error) {
	s := &specs.Spec{}
	if err := json.Unmarshal([]byte(config), s); err != nil {
		return nil, err
	}
	return plan.New(s, h, plan.Options{ID: "demo", Bundle: "/bundle", SystemdCgroup: true})
}

// The rows of the driver's tables, from the config to the property, and to the file that is written
// after it: for each the entry of the config stays known. Units begin with the same properties,
// which TestUnitPlaces has.
func TestUnitRows(t *testing.T) {
	v1, v2 := "legacy", "unified"
	for _, c := range []struct {
		layout    string
		version   int
		resources string
		want      []string
	}{
		{v1, 252, `{"memory":{"limit":65536}}`, []string{"MemoryLimit=65536 @/linux/resources/memory/limit", "memory.limit_in_bytes=65536"}},
		{v1, 252, `{"cpu":{"shares":512}}`, []string{"CPUShares=512 @/linux/resources/cpu/shares", "cpu.shares=512"}},
		{v1, 252, `{"blockIO":{"weight":500}}`, []string{"BlockIOWeight=500 @/linux/resources/blockIO/weight", "blkio.bfq.weight=500"}},
		{v1, 252, `{"pids":{"limit":7}}`, []string{"TasksMax=7 @/linux/resources/pids/limit", "pids.max=7"}},
		{v1, 252, `{"cpu":{"cpus":"1"}}`, []string{"AllowedCPUs=0x02 (1) @/linux/resources/cpu/cpus", "cpuset.cpus=1"}},
		{v1, 252, `{"cpu":{"mems":"0"}}`, []string{"AllowedMemoryNodes=0x01 (0) @/linux/resources/cpu/mems", "cpuset.mems=0"}},
		{v1, 243, `{"cpu":{"cpus":"1"}}`, []string{"cpuset.cpus=1"}},
		{v1, 243, `{"cpu":{"mems":"0"}}`, []string{"cpuset.mems=0"}},
		{"hybrid", 252, `{"memory":{"limit":65536}}`, []string{"MemoryLimit=65536 @/linux/resources/memory/limit", "memory.limit_in_bytes=65536"}},

		{v2, 257, `{"memory":{"limit":65536}}`, []string{"MemoryMax=65536 @/linux/resources/memory/limit", "memory.max=65536"}},
		{v2, 257, `{"memory":{"reservation":65536}}`, []string{"MemoryLow=65536 @/linux/resources/memory/reservation", "memory.low=65536"}},
		{v2, 257, `{"memory":{"limit":65536,"swap":98304}}`, []string{"MemoryMax=65536 @/linux/resources/memory/limit", "MemorySwapMax=32768 @/linux/resources/memory/swap", "memory.max=65536", "memory.swap.max=32768"}},
		{v2, 257, `{"cpu":{"shares":1024}}`, []string{"CPUWeight=100 @/linux/resources/cpu/shares", "cpu.weight=100"}},
		{v2, 257, `{"pids":{"limit":7}}`, []string{"TasksMax=7 @/linux/resources/pids/limit", "pids.max=7"}},
		{v2, 257, `{"cpu":{"cpus":"1"}}`, []string{"AllowedCPUs=0x02 (1) @/linux/resources/cpu/cpus", "cpuset.cpus=1"}},
		{v2, 257, `{"cpu":{"mems":"0"}}`, []string{"AllowedMemoryNodes=0x01 (0) @/linux/resources/cpu/mems", "cpuset.mems=0"}},
		{v2, 257, `{"unified":{"cpu.max":"50000 200000"}}`,
			[]string{"CPUQuotaPerSecUSec=250000 @/linux/resources/unified/cpu.max", "CPUQuotaPeriodUSec=200000 @/linux/resources/unified/cpu.max", "cpu.max=50000 200000"}},
		{v2, 257, `{"unified":{"cpu.weight":"50"}}`, []string{"CPUWeight=50 @/linux/resources/unified/cpu.weight", "cpu.weight=50"}},
		{v2, 257, `{"unified":{"cpu.idle":"1"}}`, []string{"CPUWeight=0 @/linux/resources/unified/cpu.idle", "cpu.idle=1"}},
		{v2, 251, `{"unified":{"cpu.idle":"1"}}`, []string{"cpu.idle=1"}},
		{v2, 257, `{"unified":{"cpuset.cpus":"1"}}`, []string{"AllowedCPUs=0x02 (1) @/linux/resources/unified/cpuset.cpus", "cpuset.cpus=1"}},
		{v2, 257, `{"unified":{"cpuset.mems":"0"}}`, []string{"AllowedMemoryNodes=0x01 (0) @/linux/resources/unified/cpuset.mems", "cpuset.mems=0"}},
		{v2, 243, `{"unified":{"cpuset.cpus":"1"}}`, []string{"cpuset.cpus=1"}},
		{v2, 257, `{"unified":{"memory.high":"65536"}}`, []string{"MemoryHigh=65536 @/linux/resources/unified/memory.high", "memory.high=65536"}},
		{v2, 257, `{"unified":{"memory.low":"65536"}}`, []string{"MemoryLow=65536 @/linux/resources/unified/memory.low", "memory.low=65536"}},
		{v2, 257, `{"unified":{"memory.min":"65536"}}`, []string{"MemoryMin=65536 @/linux/resources/unified/memory.min", "memory.min=65536"}},
		{v2, 257, `{"unified":{"memory.max":"65536"}}`, []string{"MemoryMax=65536 @/linux/resources/unified/memory.max", "memory.max=65536"}},
		{v2, 257, `{"unified":{"memory.swap.max":"65536"}}`, []string{"MemorySwapMax=65536 @/linux/resources/unified/memory.swap.max", "memory.swap.max=65536"}},
		{v2, 257, `{"unified":{"pids.max":"8"}}`, []string{"TasksMax=8 @/linux/resources/unified/pids.max", "pids.max=8"}},
	} {
		h := plan.SystemdHost(t, c.layout, c.version)
		bare, err := unitPlan(h, `{"linux":{}}`)
		if err != nil {
			t.Fatal(err)
		}
		p, err := unitPlan(h, `{"linux":{"resources":`+c.resources+`}}`)
		if err != nil {
			t.Errorf("%s %s: %v", c.layout, c.resources, err)
			continue
		}
		got := unitLines(p)[len(unitLines(bare)):]
		for i := range got {
			// How the value came about is the ledger's matter, and tested there.
			got[i] = withoutNote(got[i])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s with systemd %d, %s:\ngot  %q\nwant %q", c.layout, c.version, c.resources, got, c.want)
		}
	}
}

// withoutNote takes the note in brackets before the pointer away, unless it is the list that a bit
// mask stands for.
func withoutNote(line string) string {
	what, at, pointed := strings.Cut(line, " @")
	if i := strings.Index(what, " ("); i >= 0 && !strings.Contains(what, "=0x") {
		what = what[:i]
	}
	if pointed {
		what += " @" + at
	}
	return what
}

func TestUnitPlaces(t *testing.T) {
	accounting := []string{"CPUAccounting=true", "IOAccounting=true", "MemoryAccounting=true", "TasksAccounting=true"}
	for _, c := range []struct {
		name, path  string
		host        *host.Host
		cgroup      string
		payload, at string
		want        []string
	}{
		{"by default", "", plan.SystemdHost(t, "unified", 257), "/machine.slice/berth-demo.scope", "", "",
			[]string{"let systemd 257 start the unit berth-demo.scope in machine.slice", "Description=berth container demo", "Slice=machine.slice", "Delegate=true"}},
		{"named", "a-b.slice:pre:name", plan.SystemdHost(t, "unified", 257), "/a.slice/a-b.slice/pre-name.scope", "", "/linux/cgroupsPath",
			[]string{"let systemd 257 start the unit pre-name.scope in a-b.slice @/linux/cgroupsPath", "Description=berth container demo", "Slice=a-b.slice @/linux/cgroupsPath", "Delegate=true"}},
		{"a slice", "a.slice:pre:a-c.slice", plan.SystemdHost(t, "unified", 257), "/a.slice/a-c.slice", "payload", "/linux/cgroupsPath",
			[]string{"let systemd 257 start the unit a-c.slice in a.slice @/linux/cgroupsPath", "Description=berth container demo", "Wants=a.slice @/linux/cgroupsPath"}},
		{"a user's", "", forUser(plan.SystemdHost(t, "unified", 257), "cpu", "io", "memory", "pids"), "/user.slice/user-1000.slice/user@1000.service/user.slice/berth-demo.scope", "", "",
			[]string{"let the user's systemd 257 start the unit berth-demo.scope in user.slice", "Description=berth container demo", "Slice=user.slice", "Delegate=true"}},
		{"a user's on version 1", "", forUser(plan.SystemdHost(t, "legacy", 252)), "/user.slice/user-1000.slice/user@1000.service/user.slice/berth-demo.scope", "", "",
			[]string{"let the user's systemd 252 start the unit berth-demo.scope in user.slice", "Description=berth container demo", "Slice=user.slice", "Delegate=true"}},
		{"a user's on both", "", forUser(plan.SystemdHost(t, "hybrid", 252)), "/user.slice/user-1000.slice/user@1000.service/user.slice/berth-demo.scope", "", "",
			[]string{"let the user's systemd 252 start the unit berth-demo.scope in user.slice", "Description=berth container demo", "Slice=user.slice", "Delegate=true"}},
	} {
		config, err := json.Marshal(specs.Spec{Linux: &specs.Linux{CgroupsPath: c.path}})
		if err != nil {
			t.Fatal(err)
		}
		p, err := unitPlan(c.host, string(config))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if p.Cgroup.Path != c.cgroup || p.Cgroup.Payload != c.payload || p.Cgroup.At != c.at {
			t.Errorf("%s: %s, %q, %s", c.name, p.Cgroup.Path, p.Cgroup.Payload, p.Cgroup.At)
		}
		accounting[1] = "IOAccounting=true"
		if !c.host.Unified {
			accounting[1] = "BlockIOAccounting=true"
		}
		if got, want := unitLines(p), append(append(c.want, "DefaultDependencies=false"), accounting...); !slices.Equal(got, want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.name, got, want)
		}
	}
}

func TestUnitAnnotationsAndDevices(t *testing.T) {
	h := plan.SystemdHost(t, "unified", 257)
	p, err := unitPlan(h, `{"process":{"env":["container_uuid=01234567-89ab-cdef-0123-456789abcdef"]},
		"annotations":{"org.systemd.property.TimeoutStopUSec":"uint64 5","run.berth.machined":"true","run.oci.systemd.subgroup":"a/b"},
		"linux":{"resources":{"devices":[{"allow":false,"access":"rwm"},{"allow":true,"type":"c","major":10,"minor":229,"access":"rw"}]}}}`)
	if err != nil {
		t.Fatal(err)
	}
	got := allUnitLines(p)
	for _, want := range []string{"TimeoutStopUSec=uint64 5 @/annotations/org.systemd.property.TimeoutStopUSec",
		"DevicePolicy=strict @/linux/resources/devices", "DeviceAllow=/dev/char/10:229 rw",
		// What every container has: without it systemd's filter would take /dev/null and terminals
		// away at a reload.
		"DeviceAllow=/dev/char/1:3 rwm", "DeviceAllow=char-pts rwm"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	m := p.Cgroup.Unit.Machine
	if m == nil || m.Name != "demo" || m.ID[0] != 0x01 || m.ID[15] != 0xef || p.Cgroup.Payload != "a/b" {
		t.Errorf("%+v, payload %q", m, p.Cgroup.Payload)
	}
	// Without rules, what every container has and its own nodes are all.
	for _, resources := range []string{"", `"resources":{"pids":{"limit":3}},`} {
		p, err := unitPlan(h, `{"linux":{`+resources+`"devices":[{"path":"/dev/sda","type":"b","major":8,"minor":0},{"path":"/pipe","type":"p"}]}}`)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(slices.DeleteFunc(allUnitLines(p), func(line string) bool { return !strings.HasPrefix(line, "Device") }), "\n")
		want := "DevicePolicy=strict\nDeviceAllow=/dev/block/8:0 rw\nDeviceAllow=char-* m\nDeviceAllow=block-* m\nDeviceAllow=/dev/char/1:3 rwm\nDeviceAllow=/dev/char/1:5 rwm\n" +
			"DeviceAllow=/dev/char/1:7 rwm\nDeviceAllow=/dev/char/1:8 rwm\nDeviceAllow=/dev/char/1:9 rwm\nDeviceAllow=/dev/char/5:0 rwm\n" +
			"DeviceAllow=/dev/char/5:2 rwm\nDeviceAllow=char-pts rwm\nDeviceAllow=/dev/char/10:200 rwm"
		if got != want {
			t.Errorf("with %q:\ngot  %s\nwant %s", resources, got, want)
		}
	}
	// Of an ordinary user's, systemd knows no devices, and says so once.
	p, err = unitPlan(forUser(plan.SystemdHost(t, "unified", 257), "memory"), `{"linux":{"resources":{"devices":[{"allow":false,"access":"rwm"}]}}}`)
	if err != nil || p.Cgroup.Devices != nil || p.Cgroup.Unit.DevicePolicy != "" || len(p.Warnings) != 1 || !strings.HasPrefix(p.Warnings[0], "/linux/resources/devices: ") {
		t.Errorf("%+v, %v", p.Warnings, err)
	}
}

func TestUnitRefusals(t *testing.T) {
	v2 := plan.SystemdHost(t, "unified", 257)
	user := forUser(plan.SystemdHost(t, "unified", 257), "memory")
	for _, c := range []struct {
		host    *host.Host
		config  string
		pointer string
	}{
		{plan.SomeHost(), `{}`, "/linux/cgroupsPath"},
		{v2, `{"linux":{"cgroupsPath":"/a/b"}}`, "/linux/cgroupsPath"},
		{v2, `{"linux":{"cgroupsPath":"a/b.slice:x:y"}}`, "/linux/cgroupsPath"},
		{v2, `{"annotations":{"org.systemd.property.TasksMax":"uint64"}}`, "/annotations/org.systemd.property.TasksMax"},
		{v2, `{"annotations":{"run.berth.machined":"perhaps"}}`, "/annotations/run.berth.machined"},
		{v2, `{"annotations":{"run.oci.systemd.subgroup":"a/../b"}}`, "/annotations/run.oci.systemd.subgroup"},
		{v2, `{"annotations":{"run.berth.machined":"true"},"process":{"env":["container_uuid=12"]}}`, "/process/env/0"},
		{v2, `{"linux":{"resources":{"memory":{"limit":5,"swappiness":5}}}}`, "/linux/resources/memory/swappiness"},
		{user, `{"annotations":{"run.berth.machined":"true"}}`, "/annotations/run.berth.machined"},
		// Not delegated to him.
		{user, `{"linux":{"resources":{"pids":{"limit":5}}}}`, "/linux/resources/pids/limit"},
		{forUser(plan.SystemdHost(t, "legacy", 252)), `{"linux":{"resources":{"memory":{"limit":65536}}}}`, "/linux/resources/memory/limit"},
	} {
		_, err := unitPlan(c.host, c.config)
		if err == nil || !strings.Contains(err.Error(), c.pointer) {
			t.Errorf("%s: %v, want %s", c.config, err, c.pointer)
		}
	}
}

// What names no unit has one below the host's parent, where the host's settings let systemd make
// it.
func TestUnitsBelowTheParent(t *testing.T) {
	for _, c := range []struct {
		path, parent string
		paths        bool
		want, wrong  string
	}{
		{"", "/fleet/batch", false, "/fleet.slice/fleet-batch.slice/berth-demo.scope", ""},
		{"", "", true, "/machine.slice/berth-demo.scope", ""},
		{"a", "", true, "/machine.slice/berth-a.scope", ""},
		{"a/b-c/d", "/fleet", true, `/fleet.slice/fleet-a.slice/fleet-a-b\x2dc.slice/berth-d.scope`, ""},
		{"../../a", "", true, "/machine.slice/berth-a.scope", ""},
		{"a+b", "", true, `/machine.slice/berth-a\x2bb.scope`, ""},
		{"x.slice:p:n", "/fleet", true, "/x.slice/p-n.scope", ""},
		{"a", "", false, "", "slice:prefix:name"},
		{".", "", true, "", "names no cgroup"},
		{"a.slice", "", true, "", "is the name of a unit already"},
		{"a.slice/b", "", true, "", "is the name of a slice already"},
	} {
		p, err := plan.New(&specs.Spec{Linux: &specs.Linux{CgroupsPath: c.path}}, plan.SystemdHost(t, "unified", 257),
			plan.Options{ID: "demo", SystemdCgroup: true, PathNamesUnit: c.paths, Parent: c.parent})
		switch {
		case c.wrong != "":
			if err == nil || !strings.Contains(err.Error(), "/linux/cgroupsPath") || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%q: %v, want something of %q", c.path, err, c.wrong)
			}
		case err != nil || p.Cgroup.Path != c.want:
			t.Errorf("%q below %q: %v, want %s", c.path, c.parent, err, c.want)
		default:
			// A container that was made is where it was, also where the parent is another now.
			again, err := plan.New(&specs.Spec{Linux: &specs.Linux{CgroupsPath: c.path}}, plan.SystemdHost(t, "unified", 257),
				plan.Options{ID: "demo", SystemdCgroup: true, Placed: &plan.Placed{Path: p.Cgroup.Path, Unit: p.Cgroup.Unit.Unit}})
			if err != nil || again.Cgroup.Path != c.want || again.Cgroup.Unit.Place != p.Cgroup.Unit.Place {
				t.Errorf("%q, planned again: %v", c.path, err)
			}
		}
	}
}
