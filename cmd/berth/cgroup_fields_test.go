package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cmd/berth/internal/cgrouptool"
	"github.com/berth-runtime/berth/engine/spec"
	"github.com/berth-runtime/berth/internal/ptr"
	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// Fields come out as the resources object that a config would have.
func TestSetField(t *testing.T) {
	for _, test := range []struct{ settings, want string }{
		{"memory.limit=64M memory.reservation=-1 memory.swap=max memory.swappiness=10", `"memory":{"limit":67108864,"reservation":-1,"swap":-1,"swappiness":10}`},
		{"memory.disableOOMKiller=true memory.kernelTCP=1k", `"memory":{"kernelTCP":1024,"disableOOMKiller":true}`},
		{"cpu.shares=512 cpu.quota=max cpu.period=50000 cpu.burst=1 cpu.idle=1", `"cpu":{"shares":512,"quota":-1,"burst":1,"period":50000,"idle":1}`},
		{"cpu.cpus=0-3 cpu.mems=0 cpu.realtimeRuntime=5 cpu.realtimePeriod=6", `"cpu":{"realtimeRuntime":5,"realtimePeriod":6,"cpus":"0-3","mems":"0"}`},
		{"pids.limit=max", `"pids":{"limit":-1}`},
		{"blockIO.weight=500 blockIO.throttleReadBpsDevice=8:0\t1M blockIO.throttleReadIOPSDevice=8:16\tmax",
			`"blockIO":{"weight":500,"throttleReadBpsDevice":[{"major":8,"minor":0,"rate":1048576}],"throttleReadIOPSDevice":[{"major":8,"minor":16,"rate":0}]}`},
		{"blockIO.weightDevice=8:0\t100 blockIO.weightDevice=8:16\t200",
			`"blockIO":{"weightDevice":[{"major":8,"minor":0,"weight":100},{"major":8,"minor":16,"weight":200}]}`},
		{"hugepageLimits.2MB=4M hugepageLimits.1GB=0", `"hugepageLimits":[{"pageSize":"2MB","limit":4194304},{"pageSize":"1GB","limit":0}]`},
		{"network.classID=0x100001 network.priorities.eth0=5", `"network":{"classID":1048577,"priorities":[{"name":"eth0","priority":5}]}`},
		{"rdma.mlx5_1.hcaHandles=3 rdma.mlx5_1.hcaObjects=4", `"rdma":{"mlx5_1":{"hcaHandles":3,"hcaObjects":4}}`},
		{"devices=deny\ta,allow\tc\t1:*\tr", `"devices":[{"allow":false,"type":"a","access":"rwm"},{"allow":true,"type":"c","major":1,"access":"r"}]`},
	} {
		resources, files, err := sortSettings(settingsOf(test.settings), nil, func(string) bool { return false })
		if err != nil || len(files) > 0 {
			t.Errorf("%s: %v, files %v", test.settings, err, files)
			continue
		}
		got := string(spec.Format(&specs.Spec{Linux: &specs.Linux{Resources: resources}}, ""))
		if want := `"resources":{` + test.want + `}`; !strings.Contains(got, want) {
			t.Errorf("%s:\ngot  %s\nwant %s", test.settings, got, want)
		}
	}
}

// settingsOf splits at spaces; a tab stands for one in a value.
func settingsOf(text string) []string {
	list := strings.Fields(strings.ReplaceAll(text, "\t", "\x00"))
	for i := range list {
		list[i] = strings.ReplaceAll(list[i], "\x00", " ")
	}
	return list
}

func TestSetFieldRefuses(t *testing.T) {
	for _, text := range []string{
		"memory.limit=lots", "memory.swappiness=-1", "cpu.shares=-1", "cpu.quota=1.5", "pids.limit=", "blockIO.weight=70000",
		"blockIO.throttleReadBpsDevice=8:0", "blockIO.throttleReadBpsDevice=8 1M", "blockIO.weightDevice=8:0 70000",
		"hugepageLimits.2MB=-1", "network.classID=0x100000000", "rdma.x.hcaHandles=-1", "devices=", "devices=permit a", "devices=allow c 1:x", "memory.limit", "=5",
	} {
		if resources, files, err := sortSettings([]string{text}, nil, func(string) bool { return false }); err == nil {
			t.Errorf("%s is taken: %+v, %v", text, resources, files)
		}
	}
}

// A name that is a file of the cgroup means the file, and so does one that is no field.
func TestSettingsThatAreFiles(t *testing.T) {
	given := &specs.LinuxResources{Pids: &specs.LinuxPids{Limit: ptr.To(int64(5))}}
	resources, files, err := sortSettings([]string{"cpu.shares=512", "pids.limit=7", "memory.high=1M"}, given,
		func(name string) bool { return name == "cpu.shares" })
	want := []cgrouptool.Setting{{Name: "cpu.shares", Value: "512"}, {Name: "memory.high", Value: "1M"}}
	if err != nil || !slices.Equal(files, want) || *resources.Pids.Limit != 7 {
		t.Errorf("%+v, %v, %v", resources, files, err)
	}
	if *given.Pids.Limit != 5 {
		t.Error("what is for all cgroups was changed for one")
	}
}
