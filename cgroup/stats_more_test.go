package cgroup

import "testing"

// Without the controller the processes are counted, those of groups below as well.
func TestStatsWithoutPids(t *testing.T) {
	g := fakeGroup(t, map[string]string{
		"proc/self/mountinfo":                unifiedTable,
		"sys/fs/cgroup/cgroup.controllers":   "cpu memory\n",
		"sys/fs/cgroup/web/cgroup.procs":     "7\n8\n",
		"sys/fs/cgroup/web/sub/cgroup.procs": "9\n",
	})
	s, err := g.Stats(Pids)
	if err != nil || s.Pids == nil {
		t.Fatalf("%+v, %v", s, err)
	}
	num(t, "processes", s.Pids.Usage, 3)
	unknown(t, "their limit", s.Pids.Limit)
}
