package cgrouptool

import (
	"slices"
	"testing"
)

func TestItems(t *testing.T) {
	const ioMax = "8:0 rbps=1048576 wbps=max riops=max wiops=7\n8:16 rbps=max wbps=2 riops=max wiops=max\n"
	for _, test := range []struct{ field, file, text, item, want string }{
		{"/blockIO/throttleReadBpsDevice/*", "io.max", ioMax, "", "8:0 1048576"},
		{"/blockIO/throttleWriteBpsDevice/*", "io.max", ioMax, "8:16", "2"},
		{"/blockIO/throttleWriteIOPSDevice/*", "io.max", ioMax, "8:16", "max"},
		{"/blockIO/throttleReadIOPSDevice/*", "io.max", ioMax, "", ""},
		{"/blockIO/throttleReadBpsDevice/*", "blkio.throttle.read_bps_device", "8:0 5\n8:16 6\n", "", "8:0 5\n8:16 6"},
		{"/blockIO/weightDevice/*/weight", "io.weight", "default 100\n8:0 10000\n", "", "8:0 1000"},
		{"/blockIO/weightDevice/*/weight", "io.bfq.weight", "default 100\n8:0 300\n", "8:0", "300"},
		{"/rdma/*/hcaHandles", "rdma.max", "mlx5_0 hca_handle=2 hca_object=max\n", "mlx5_0", "2"},
		{"/rdma/*/hcaObjects", "rdma.max", "mlx5_0 hca_handle=2 hca_object=max\n", "", ""},
		{"/network/priorities/*", "net_prio.ifpriomap", "lo 0\neth0 5\n", "eth0", "5"},
		{"/network/priorities/*", "net_prio.ifpriomap", "lo 0\neth0 5\n", "eth1", ""},
		{"/network/priorities/*", "net_prio.ifpriomap", "lo 0\neth0 5\n", "", "lo 0\neth0 5"},
	} {
		if got := items(test.field, test.file, test.text, test.item); got != test.want {
			t.Errorf("%s of %q in %s: %q, want %q", test.field, test.item, test.file, got, test.want)
		}
	}
}

func TestFieldsByName(t *testing.T) {
	for _, test := range []struct{ name, field, item string }{
		{"memory.limit", "/memory/limit", ""},
		{"hugepageLimits.2MB", "/hugepageLimits/*/limit", "2MB"},
		{"network.priorities", "/network/priorities/*", ""},
		{"network.priorities.eth0.100", "/network/priorities/*", "eth0.100"},
		{"rdma.mlx5.0.hcaObjects", "/rdma/*/hcaObjects", "mlx5.0"},
		{"rdma", "/rdma/*/hcaHandles", ""},
		{"blockIO.weightDevice.8:0.leafWeight", "/blockIO/weightDevice/*/leafWeight", "8:0"},
		{"devices", "/devices", ""},
		{"hugepageLimits", "", ""},
		{"rdma.mlx5", "", ""},
		{"memory.limit.x", "", ""},
		{"unified.memory.max", "", ""},
	} {
		e, item, known := entryOf(test.name)
		if known != (test.field != "") || e.Field != test.field || item != test.item {
			t.Errorf("%s: %s of %q, %v; want %s of %q", test.name, e.Field, item, known, test.field, test.item)
		}
	}
}

// What is copied is what differs, and a file that a field is for is not copied twice.
func TestCopied(t *testing.T) {
	files := map[string]string{}
	for name, text := range unifiedFiles {
		files[name] = text
	}
	const a, b = "sys/fs/cgroup/a/", "sys/fs/cgroup/b/"
	for name, text := range map[string]string{
		"memory.max": "1048576\n", "memory.high": "524288\n", "memory.swap.max": "0\n", "pids.max": "max\n", "cpu.max": "50000 100000\n",
		"io.max": "8:0 rbps=5 wbps=max riops=max wiops=max\n", "io.latency": "8:0 target=10\n8:16 target=20\n", "hugetlb.2MB.max": "4194304\n", "cgroup.procs": "",
	} {
		files[a+name] = text
	}
	for name, text := range map[string]string{
		"memory.max": "max\n", "memory.high": "max\n", "memory.swap.max": "max\n", "pids.max": "max\n", "cpu.max": "max 100000\n",
		"io.max": "", "io.latency": "8:0 target=10\n", "hugetlb.2MB.max": "max\n", "cgroup.procs": "",
	} {
		files[b+name] = text
	}
	tools := fake(t, files)
	from, err := tools.Open(mustParse(t, "/a"))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := tools.Open(mustParse(t, "/b"))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	got, err := tools.Copied(from, to)
	slices.Sort(got)
	want := []string{
		"blockIO.throttleReadBpsDevice=8:0 5", "cpu.quota=50000", "hugetlb.2MB.max=4194304", "io.latency=8:16 target=20",
		"memory.high=524288", "memory.limit=1048576", "memory.swap=1048576",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v\nwant %q", got, err, want)
	}
	if again, err := tools.Copied(from, from); err != nil || len(again) > 0 {
		t.Errorf("of itself: %q, %v", again, err)
	}
}
