package cgrouptool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Layouts, as the mount tables of real machines show them.
const (
	unifiedTable = `35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`
	hybridTable = `32 31 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
33 31 0:28 / /sys/fs/cgroup/systemd rw,nosuid shared:10 - cgroup cgroup rw,xattr,name=systemd
36 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:14 - cgroup cgroup rw,cpu,cpuacct
38 31 0:33 / /sys/fs/cgroup/memory rw,nosuid shared:16 - cgroup cgroup rw,memory
39 31 0:34 / /sys/fs/cgroup/pids rw,nosuid shared:17 - cgroup cgroup rw,pids
`
	oddTable = `31 23 0:26 / /dev/cpusets rw - cgroup cpuset rw,cpuset,noprefix
40 23 0:27 / /cgroup/all rw - cgroup none rw,cpu,cpuacct,memory,blkio
`
)

// unifiedFiles are a machine with a slice, a service and a container in a scope.
var unifiedFiles = map[string]string{
	"proc/self/mountinfo": unifiedTable,
	"proc/cgroups":        "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpuset\t0\t5\t1\ncpu\t0\t5\t1\nblkio\t0\t5\t1\nmemory\t0\t5\t0\nfreezer\t0\t5\t1\n",
	"proc/meminfo":        "MemTotal:        8388608 kB\nMemFree:          100 kB\nMemAvailable:    6291456 kB\n",
	"proc/loadavg":        "0.10 0.20 0.30 2/321 4242\n",
	"proc/pressure/cpu":   "some avg10=12.50 avg60=0.00 avg300=0.00 total=1\n",
	"proc/101/cmdline":    "/usr/sbin/sshd\x00-D\x00",
	"proc/102/cmdline":    "evil\x1b[31m\nname\x00",
	"proc/2/cmdline":      "",
	"proc/2/comm":         "kthreadd\n",

	"sys/fs/cgroup/cgroup.controllers":                              "cpuset cpu io memory pids\n",
	"sys/fs/cgroup/cgroup.subtree_control":                          "cpu io memory pids\n",
	"sys/fs/cgroup/cgroup.procs":                                    "2\n",
	"sys/fs/cgroup/cpu.stat":                                        "usage_usec 7384000000\nuser_usec 1\nsystem_usec 1\n",
	"sys/fs/cgroup/system.slice/cgroup.controllers":                 "cpu io memory pids\n",
	"sys/fs/cgroup/system.slice/cgroup.subtree_control":             "memory pids\n",
	"sys/fs/cgroup/system.slice/cgroup.procs":                       "",
	"sys/fs/cgroup/system.slice/cpu.stat":                           "usage_usec 65000000\n",
	"sys/fs/cgroup/system.slice/memory.current":                     "12582912\n",
	"sys/fs/cgroup/system.slice/memory.max":                         "max\n",
	"sys/fs/cgroup/system.slice/pids.current":                       "3\n",
	"sys/fs/cgroup/system.slice/pids.max":                           "max\n",
	"sys/fs/cgroup/system.slice/ssh.service/cgroup.controllers":     "memory pids\n",
	"sys/fs/cgroup/system.slice/ssh.service/cgroup.subtree_control": "",
	"sys/fs/cgroup/system.slice/ssh.service/cgroup.procs":           "101\n102\n",
	"sys/fs/cgroup/system.slice/ssh.service/cpu.stat":               "usage_usec 1500000\n",
	"sys/fs/cgroup/system.slice/ssh.service/memory.current":         "61865984\n",
	"sys/fs/cgroup/system.slice/ssh.service/memory.max":             "67108864\n",
	"sys/fs/cgroup/system.slice/ssh.service/memory.pressure":        "some avg10=30.00 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
	"sys/fs/cgroup/system.slice/ssh.service/pids.current":           "2\n",
	"sys/fs/cgroup/system.slice/ssh.service/pids.max":               "20\n",
	"sys/fs/cgroup/system.slice/ssh.service/cpu.weight":             "59\n",
	"sys/fs/cgroup/system.slice/ssh.service/cpu.max":                "50000 100000\n",
	"sys/fs/cgroup/system.slice/ssh.service/memory.swap.max":        "67108864\n",
	"sys/fs/cgroup/system.slice/ssh.service/io.weight":              "default 4950\n8:0 10\n",
	"sys/fs/cgroup/system.slice/ssh.service/io.stat":                "8:0 rbytes=1048576 wbytes=2097152 rios=1 wios=1 dbytes=0 dios=0\n",
	"sys/fs/cgroup/a name\x1b[2J/cgroup.procs":                      "",
}

var hybridFiles = map[string]string{
	"proc/self/mountinfo": hybridTable,
	"proc/cgroups":        "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t3\t2\t1\ncpuacct\t3\t2\t1\nmemory\t4\t2\t1\npids\t5\t2\t1\nhugetlb\t0\t1\t1\nnet_cls\t0\t1\t1\n",
	"proc/7/cmdline":      "worker\x00",

	"sys/fs/cgroup/unified/cgroup.controllers":        "hugetlb\n",
	"sys/fs/cgroup/unified/cgroup.subtree_control":    "",
	"sys/fs/cgroup/unified/cgroup.procs":              "7\n",
	"sys/fs/cgroup/systemd/cgroup.procs":              "7\n",
	"sys/fs/cgroup/cpu,cpuacct/cgroup.procs":          "7\n",
	"sys/fs/cgroup/memory/cgroup.procs":               "",
	"sys/fs/cgroup/memory/jobs/cgroup.procs":          "7\n",
	"sys/fs/cgroup/memory/jobs/tasks":                 "7\n",
	"sys/fs/cgroup/memory/jobs/notify_on_release":     "0\n",
	"sys/fs/cgroup/memory/jobs/memory.oom_control":    "oom_kill_disable 1\nunder_oom 0\n",
	"sys/fs/cgroup/memory/jobs/memory.swappiness":     "60\n",
	"sys/fs/cgroup/memory/jobs/memory.force_empty":    "",
	"sys/fs/cgroup/memory/jobs/memory.limit_in_bytes": "9223372036854771712\n",
	"sys/fs/cgroup/memory/jobs/memory.usage_in_bytes": "4096\n",
	"sys/fs/cgroup/pids/cgroup.procs":                 "7\n",
	"sys/fs/cgroup/pids/jobs/pids.current":            "1\n",
	"sys/fs/cgroup/pids/jobs/pids.max":                "max\n",
	"sys/fs/cgroup/pids/jobs/cgroup.procs":            "",
}

var oddFiles = map[string]string{
	"proc/self/mountinfo":          oddTable,
	"dev/cpusets/demo/cpus":        "0-3\n",
	"dev/cpusets/demo/tasks":       "",
	"cgroup/all/demo/cpu.shares":   "512\n",
	"cgroup/all/demo/cgroup.procs": "",
}

func fake(t testing.TB, files map[string]string) *Tools {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o644)
		if strings.HasSuffix(name, "force_empty") {
			mode = 0o200
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	tools, err := New(dir)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

func mustParse(t testing.TB, text string) Target {
	t.Helper()
	target, err := ParseTarget(text)
	if err != nil {
		t.Fatal(err)
	}
	return target
}
