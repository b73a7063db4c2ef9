package cgrouptool

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestListOfHybridHost(t *testing.T) {
	var got []string
	for _, f := range listed(t, fake(t, hybridFiles)) {
		got = append(got, f.Spelling())
	}
	want := []string{"hugetlb:/", "name=systemd:/", "cpu,cpuacct:/", "memory:/", "memory:/jobs", "pids:/", "pids:/jobs"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func listed(t *testing.T, tools *Tools) []Found {
	t.Helper()
	var found []Found
	err := tools.List(mustParse(t, "/"), func(f Found) error {
		found = append(found, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What list writes is what -g takes.
func TestSpellingsAreTargets(t *testing.T) {
	for _, files := range []map[string]string{unifiedFiles, hybridFiles, oddFiles} {
		tools := fake(t, files)
		for _, f := range listed(t, tools) {
			g, err := tools.Open(mustParse(t, f.Spelling()))
			if err != nil {
				t.Errorf("%s: %v", f.Spelling(), err)
				continue
			}
			if in := tools.in(g); len(in) != 1 || in[0] != f.Hierarchy || g.Path() != f.Path {
				t.Errorf("%s: found %s in %v", f.Spelling(), g.Path(), in)
			}
			g.Close()
		}
	}
}

func TestControllers(t *testing.T) {
	for _, test := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"unified", unifiedFiles, []string{
			"cpuset enabled=true v2 /sys/fs/cgroup in 1 by []",
			"cpu enabled=true v2 /sys/fs/cgroup in 2 by [/]",
			"io enabled=true v2 /sys/fs/cgroup in 2 by [/]",
			"memory enabled=false v2 /sys/fs/cgroup in 3 by [/ /system.slice]",
			"freezer enabled=true nowhere",
			"pids enabled=true v2 /sys/fs/cgroup in 3 by [/ /system.slice]",
		}},
		{"hybrid", hybridFiles, []string{
			"cpu enabled=true v1 /sys/fs/cgroup/cpu,cpuacct in 1 by []",
			"cpuacct enabled=true v1 /sys/fs/cgroup/cpu,cpuacct in 1 by []",
			"memory enabled=true v1 /sys/fs/cgroup/memory in 2 by []",
			"pids enabled=true v1 /sys/fs/cgroup/pids in 2 by []",
			"hugetlb enabled=true v2 /sys/fs/cgroup/unified in 1 by []",
			"net_cls enabled=true nowhere",
		}},
	} {
		list, err := fake(t, test.files).Controllers()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range list {
			where := "nowhere"
			if c.Home != nil {
				where = fmt.Sprintf("v%d %s in %d by %v", c.Home.Version, c.Home.Mountpoint, c.Groups, c.Enablers)
			}
			got = append(got, fmt.Sprintf("%s enabled=%v %s", c.Name, c.Enabled, where))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s:\n%s\nwant\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

func FuzzProcCgroups(f *testing.F) {
	f.Add(unifiedFiles["proc/cgroups"])
	f.Add("cpu 1 2\nmemory x 1 1\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, c := range parseProcCgroups(text) {
			if c.Name == "" || strings.ContainsAny(c.Name, " \t\n") {
				t.Errorf("a controller named %q", c.Name)
			}
		}
	})
}

func TestTreeDrawn(t *testing.T) {
	tools := fake(t, unifiedFiles)
	for _, test := range []struct {
		name  string
		style Style
		how   Looking
		want  string
	}{
		{"plain, whole", Style{}, Looking{Depth: -1}, `
CGROUP                MEMORY    CPU  TASKS
/                  2.0G/8.0G  2h03m    321
|-a name?[2J               -      -      -
` + "`-system.slice         12.0M  1m05s      3" + `
  ` + "`-ssh.service  59.0M/64.0M  1.50s   2/20\n"},
		{"boxes and processes", Style{Unicode: true}, Looking{Depth: -1, Processes: true}, `
CGROUP                MEMORY    CPU  TASKS
/                  2.0G/8.0G  2h03m    321
├─a name?[2J               -      -      -
└─system.slice         12.0M  1m05s      3
  └─ssh.service  59.0M/64.0M  1.50s   2/20
    ├─·101 /usr/sbin/sshd -D
    └─·102 evil?[31m?name
`},
		{"one level, with threads of the kernel", Style{Unicode: true}, Looking{Depth: 0, Processes: true, KernelThreads: true}, `
CGROUP     MEMORY    CPU  TASKS
/       2.0G/8.0G  2h03m    321
└─·2 [kthreadd]
`},
		{"narrow", Style{Unicode: true, Width: 50}, Looking{Depth: -1, Processes: true}, ""},
		{"too narrow for columns", Style{Width: 20}, Looking{Depth: -1}, ""},
	} {
		tree, err := tools.Tree(mustParse(t, "/"), test.how)
		if err != nil {
			t.Fatal(err)
		}
		got := test.style.Draw(tree)
		for line := range strings.Lines(got) {
			if test.style.Width > 0 && len([]rune(strings.TrimSuffix(line, "\n"))) > test.style.Width {
				t.Errorf("%s: a line is too long: %q", test.name, line)
			}
			if strings.Contains(line, "\x1b") {
				t.Errorf("%s: an escape sequence got through: %q", test.name, line)
			}
		}
		if test.want != "" && got != strings.TrimPrefix(test.want, "\n") {
			t.Errorf("%s: got\n%swant%s", test.name, got, test.want)
		}
	}
}

func TestTreeColours(t *testing.T) {
	tree, err := fake(t, unifiedFiles).Tree(mustParse(t, "/system.slice/ssh.service"), Looking{Depth: -1, Parts: All})
	if err != nil {
		t.Fatal(err)
	}
	// 59 of 64 MiB are above nine tenths.
	if got := (Style{Color: true}).Draw(tree); !strings.Contains(got, "\x1b[31m59.0M/64.0M\x1b[0m") {
		t.Errorf("memory near its limit is not red: %q", got)
	}
}

// A path that only some hierarchies have is one node, and a process is shown
// where it is deepest.
func TestTreeMergesHierarchies(t *testing.T) {
	tree, err := fake(t, hybridFiles).Tree(mustParse(t, "/"), Looking{Depth: -1, Processes: true, Parts: All})
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Children) != 1 || len(tree.Processes) != 0 {
		t.Fatalf("%d children, processes %v", len(tree.Children), tree.Processes)
	}
	jobs := tree.Children[0]
	if jobs.Path != "/jobs" || len(jobs.Hierarchies) != 2 || len(jobs.Processes) != 1 || jobs.Processes[0] != (Process{7, "worker"}) {
		t.Errorf("%+v", jobs)
	}
	if *jobs.Usage.Memory != 4096 || jobs.Usage.MemoryLimit != nil || *jobs.Usage.Tasks != 1 || jobs.Usage.CPU != nil {
		t.Errorf("%+v", jobs.Usage)
	}
}

func TestGet(t *testing.T) {
	for _, test := range []struct {
		files              map[string]string
		target, name, want string
	}{
		{unifiedFiles, "/system.slice/ssh.service", "memory.max", "67108864"},
		{unifiedFiles, "/system.slice/ssh.service", "memory.limit", "67108864"},
		{unifiedFiles, "/system.slice/ssh.service", "memory.swap", "134217728"},
		{unifiedFiles, "/system.slice/ssh.service", "cpu.shares", "516"}, // the middle of those that become 59
		{unifiedFiles, "/system.slice/ssh.service", "cpu.quota", "50000"},
		{unifiedFiles, "/system.slice/ssh.service", "cpu.period", "100000"},
		{unifiedFiles, "/system.slice/ssh.service", "pids.limit", "20"},
		{unifiedFiles, "/system.slice/ssh.service", "blockIO.weight", "500"},
		{unifiedFiles, "/system.slice", "pids.limit", "-1"},
		{hybridFiles, "/jobs", "memory.limit", "-1"},
		{hybridFiles, "/jobs", "memory.disableOOMKiller", "1"},
		{hybridFiles, "/jobs", "memory.swappiness", "60"},
		{hybridFiles, "/jobs", "notify_on_release", "0"},
		{oddFiles, "/demo", "cpu.shares", "512"},
		{oddFiles, "/demo", "cpuset.cpus", "0-3"},
		{oddFiles, "/demo", "cpu.cpus", "0-3"},
	} {
		tools := fake(t, test.files)
		g, err := tools.Open(mustParse(t, test.target))
		if err != nil {
			t.Fatal(err)
		}
		values, err := tools.Get(g, []string{test.name})
		if err != nil || len(values) != 1 || values[0].Text != test.want {
			t.Errorf("%s of %s: %q, %v; want %q", test.name, test.target, values, err, test.want)
		}
		g.Close()
	}
}

func TestGetOfWhatIsNotThere(t *testing.T) {
	tools := fake(t, hybridFiles)
	g, err := tools.Open(mustParse(t, "/jobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for name, want := range map[string]string{
		"memory.max":               "memory.limit is the same on either version",
		"cpu.shares":               "no cpu.shares",
		"../jobs/tasks":            "not the name of a file",
		"nonsense":                 "no nonsense",
		"memory.checkBeforeUpdate": "no file",
		"hugepageLimits.2MB":       "hugetlb.2MB.max",
	} {
		if values, err := tools.Get(g, []string{name}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q, %v; want an error with %q", name, values, err, want)
		}
	}
}

func TestGetAll(t *testing.T) {
	tools := fake(t, hybridFiles)
	g, err := tools.Open(mustParse(t, "/jobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for _, test := range []struct {
		controllers []string
		want        string
	}{
		{[]string{"pids"}, "pids.current pids.max"},
		{[]string{"memory"}, "memory.limit_in_bytes memory.oom_control memory.swappiness memory.usage_in_bytes"},
		{nil, "cgroup.procs memory.limit_in_bytes memory.oom_control memory.swappiness memory.usage_in_bytes notify_on_release tasks cgroup.procs pids.current pids.max"},
	} {
		values, err := tools.GetAll(g, test.controllers)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, v := range values {
			names = append(names, v.Name)
		}
		if got := strings.Join(names, " "); got != test.want {
			t.Errorf("%v: %s\nwant %s", test.controllers, got, test.want)
		}
	}
}
