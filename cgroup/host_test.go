package cgroup

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/internal/proc/mountinfo"
)

// Layouts, as the mount tables of real machines show them.
const (
	unifiedTable = `24 30 0:22 / /proc rw,nosuid - proc proc rw
35 24 0:30 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
`
	hybridTable = `31 23 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:8 - tmpfs tmpfs ro,size=4096k,mode=755
32 31 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate
33 31 0:28 / /sys/fs/cgroup/systemd rw,nosuid shared:10 - cgroup cgroup rw,xattr,name=systemd
36 31 0:31 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:14 - cgroup cgroup rw,cpu,cpuacct
37 31 0:32 / /sys/fs/cgroup/net_cls,net_prio rw,nosuid shared:15 - cgroup cgroup rw,net_cls,net_prio
38 31 0:33 / /sys/fs/cgroup/memory rw,nosuid shared:16 - cgroup cgroup rw,memory
`
	oddTable = `31 23 0:26 / /dev/cpu\040sets rw - cgroup cpuset rw,cpuset,noprefix,release_agent=/sbin/cpuset_release_agent
40 23 0:27 / /cgroup/all rw shared:2 master:1 - cgroup none rw,seclabel,cpu,cpuacct,memory,pids,clone_children
41 23 0:29 / /cgroup/session rw - cgroup none rw,none,name=elogind
`
	containerTable = `900 800 0:30 /docker/c1 /sys/fs/cgroup/memory ro,nosuid master:16 - cgroup cgroup rw,memory
901 800 0:31 /docker/c1 /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids
`
)

func TestDetectLayouts(t *testing.T) {
	tests := []struct {
		name  string
		table string
		files map[string]string
		mode  Mode
		want  []string
	}{
		{"unified", unifiedTable, map[string]string{"sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids\n"}, Unified,
			[]string{"unified /sys/fs/cgroup [cpuset cpu io memory pids]"}},
		{"hybrid with a controller on v2", hybridTable, map[string]string{"sys/fs/cgroup/unified/cgroup.controllers": "hugetlb\n"}, Hybrid,
			[]string{"unified /sys/fs/cgroup/unified [hugetlb]", "name=systemd /sys/fs/cgroup/systemd []",
				"cpu,cpuacct /sys/fs/cgroup/cpu,cpuacct [cpu cpuacct]",
				"net_cls,net_prio /sys/fs/cgroup/net_cls,net_prio [net_cls net_prio]", "memory /sys/fs/cgroup/memory [memory]"}},
		{"odd places and flags", oddTable, nil, Legacy,
			[]string{"cpuset /dev/cpu sets [cpuset]", "cpu,cpuacct,memory,pids /cgroup/all [cpu cpuacct memory pids]", "name=elogind /cgroup/session []"}},
		{"in a container", containerTable, nil, Legacy,
			[]string{"memory /sys/fs/cgroup/memory [memory]", "pids /sys/fs/cgroup/pids [pids]"}},
		{"nothing mounted", "24 30 0:22 / /proc rw,nosuid - proc proc rw\n", nil, None, nil},
		{"empty table", "", nil, None, nil},
		{"one covers the other", unifiedTable + "50 35 0:40 / /sys/fs/cgroup rw - cgroup cgroup rw,pids\n", nil, Legacy,
			[]string{"pids /sys/fs/cgroup [pids]"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			files := map[string]string{"proc/self/mountinfo": test.table}
			for name, text := range test.files {
				files[name] = text
			}
			host := fakeHost(t, files)
			var got []string
			for _, h := range host.Hierarchies() {
				got = append(got, h.String()+" "+h.Mountpoint+" ["+strings.Join(h.Controllers, " ")+"]")
			}
			if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
			if host.Mode() != test.mode {
				t.Errorf("mode %v, want %v", host.Mode(), test.mode)
			}
		})
	}
}

func TestDetectPrefersTheWholeWritableMount(t *testing.T) {
	table := `1 2 0:30 /docker/a /run/a/sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
3 2 0:30 / /ro/pids ro - cgroup cgroup rw,pids
4 2 0:30 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
5 2 0:30 /docker/b /run/b/sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
`
	host := fakeHost(t, map[string]string{"proc/self/mountinfo": table})
	if len(host.Hierarchies()) != 1 || host.Controller("pids").Mountpoint != "/sys/fs/cgroup/pids" {
		t.Errorf("got %+v", host.Hierarchies()[0])
	}
}

func TestNoPrefixNames(t *testing.T) {
	host := fakeHost(t, map[string]string{"proc/self/mountinfo": oddTable})
	h := host.Controller("cpuset")
	for name, want := range map[string]string{"cpuset.cpus": "cpus", "cgroup.procs": "cgroup.procs", "tasks": "tasks"} {
		if got := h.file(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if got := host.Controller("cpu").file("cpu.shares"); got != "cpu.shares" {
		t.Errorf("cpu.shares is %s", got)
	}
}

// The kernel's own view of this machine is the oracle: what /proc/cgroups says
// to be on a version 1 hierarchy must be found there, and nothing else.
func TestDetectThisMachine(t *testing.T) {
	host, err := Detect()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/cgroups")
	if err != nil {
		t.Skip(err)
	}
	for line := range bytes.Lines(text) {
		f := strings.Fields(string(line))
		if len(f) != 4 || strings.HasPrefix(f[0], "#") || f[3] != "1" {
			continue
		}
		h := host.Controller(f[0])
		if onV1 := f[1] != "0"; onV1 && (h == nil || h.Version != 1) {
			t.Errorf("%s is on version 1 hierarchy %s, found %v", f[0], f[1], h)
		} else if !onV1 && h != nil && h.Version != 2 {
			t.Errorf("%s is not on version 1, found %v", f[0], h)
		}
	}
}

func TestWithin(t *testing.T) {
	tests := []struct{ root, path, want string }{
		{"/", "/", "/"},
		{"/", "/a/b", "/a/b"},
		{"/docker/c1", "/docker/c1", "/"},
		{"/docker/c1", "/docker/c1/x", "/x"},
		{"/docker/c1", "/docker/c11", ""},
		{"/docker/c1", "/", ""},
		{"/..", "/", ""},
		{"/", "/../other", ""},
	}
	for _, test := range tests {
		h := Hierarchy{Root: test.root, Version: 2}
		got, err := h.within(test.path)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s in %s: %q, %v; want %q", test.path, test.root, got, err, test.want)
		}
	}
}

func FuzzMountinfo(f *testing.F) {
	for _, table := range []string{unifiedTable, hybridTable, oddTable, containerTable} {
		f.Add([]byte(table))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, m := range mountinfo.Parse(string(text), "cgroup2", "cgroup") {
			h := hierarchyOf(m)
			if h.Version != 1 && h.Version != 2 {
				t.Errorf("version %d", h.Version)
			}
			_ = h.String()
		}
	})
}

func FuzzMemberships(f *testing.F) {
	f.Add([]byte("12:cpu,cpuacct:/a\n1:name=systemd:/init.scope\n0::/x:y (deleted)\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseMemberships(text)
		for _, m := range list {
			if err == nil && m.path == "" && !m.deleted {
				t.Errorf("empty path in %q", text)
			}
		}
	})
}

func TestParseMemberships(t *testing.T) {
	list, err := parseMemberships([]byte("12:cpu,cpuacct:/a:b\n1:name=systemd:/init.scope\n0::/gone (deleted)\n"))
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	if list[0].path != "/a:b" || list[1].name != "systemd" || !list[2].unified || !list[2].deleted || list[2].path != "/gone" {
		t.Errorf("got %+v", list)
	}
	for _, bad := range []string{"x\n", "1:cpu\n", "1:cpu:\n"} {
		if _, err := parseMemberships([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func BenchmarkDetect(b *testing.B) {
	for b.Loop() {
		if _, err := Detect(); err != nil {
			b.Fatal(err)
		}
	}
}
