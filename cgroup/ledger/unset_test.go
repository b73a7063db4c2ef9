package ledger_test

import (
	"slices"
	"testing"

	"github.com/berth-runtime/berth/cgroup/ledger"
)

func TestUnset(t *testing.T) {
	for _, c := range []struct {
		file, text string
		unset      bool
	}{
		{"memory.max", "max", true}, {"memory.max", "4096", false}, {"memory.low", "0", true}, {"memory.max", "0", false},
		{"memory.limit_in_bytes", "9223372036854771712\n", true}, {"memory.limit_in_bytes", "4096", false},
		{"cpu.max", "max 100000", true}, {"cpu.max", "20000 100000", false},
		{"cpu.cfs_quota_us", "-1", true}, {"cpu.cfs_period_us", "100000", true}, {"cpu.cfs_period_us", "50000", false},
		{"cpu.shares", "1024", true}, {"cpu.weight", "100", true}, {"cpu.weight", "50", false},
		{"io.max", "", true}, {"io.max", "8:0 rbps=1 wbps=max riops=max wiops=max", false},
		{"io.weight", "default 100", true}, {"io.weight", "default 100\n8:0 50", false},
		{"rdma.max", "mlx hca_handle=max hca_object=max\n", true}, {"rdma.max", "mlx hca_handle=2 hca_object=max", false},
		{"misc.max", "sev max\n", true}, {"net_prio.ifpriomap", "lo 0\neth0 5\n", false}, {"net_prio.ifpriomap", "lo 0\neth0 0\n", true},
		{"memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", true}, {"memory.oom_control", "oom_kill_disable 1\nunder_oom 0\n", false},
		{"cpuset.cpus", "", true}, {"cpuset.cpus", "0-1", false}, {"cpuset.cpus.partition", "member", true},
	} {
		if got := ledger.Unset(c.file, c.text); got != c.unset {
			t.Errorf("%s with %q: %t", c.file, c.text, got)
		}
	}
}

func TestLimitFiles(t *testing.T) {
	files := ledger.LimitFiles()
	for _, want := range []string{"memory.max", "memory.limit_in_bytes", "cpu.max", "io.max", "hugetlb.<size>.max", "memory.high"} {
		if !slices.Contains(files, want) {
			t.Errorf("no %s", want)
		}
	}
	if slices.Contains(files, "devices.allow") || len(slices.Compact(slices.Sorted(slices.Values(files)))) != len(files) {
		t.Errorf("%q", files)
	}
}
