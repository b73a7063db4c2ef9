package box

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/engine/spec"
	"golang.org/x/sys/unix"
)

func TestParseBind(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/", dir+"/root"); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ text, source, path string }{
		{"/", "", ""}, {dir + "/root", "", ""}, {dir + "/root:/data", dir + "/root", "/data"},
		{dir, dir, dir}, {dir + ":/data", dir, "/data"}, {dir + ":/data/../x", dir, "/x"},
		{"", "", ""}, {dir + ":relative", "", ""}, {dir + ":/", "", ""}, {dir + "/missing", "", ""},
	} {
		b, err := ParseBind(test.text, true)
		if (err == nil) != (test.path != "") || err == nil && (b.Source != test.source || b.Path != test.path || !b.Writable) {
			t.Errorf("%q: %+v, %v", test.text, b, err)
		}
	}
}

func size(text string) (int64, error) { return int64(len(text)), nil }

func TestParseThrottle(t *testing.T) {
	r, err := ParseThrottle("8:16:rbps=123,wiops=1", size)
	if err != nil || r.Major != 8 || r.Minor != 16 || r.Rates["rbps"] != 3 || r.Rates["wiops"] != 1 || len(r.Rates) != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, wrong := range []string{"", "8:16", ":rbps=1", "8:16:speed=1", "8:16:rbps=", "8:x:rbps=1", "/dev/null:rbps=1", "/no/such:rbps=1"} {
		if r, err := ParseThrottle(wrong, size); err == nil {
			t.Errorf("%q: %+v", wrong, r)
		}
	}
}

// The configuration passes the engine's own check, for root and for others.
func TestSpec(t *testing.T) {
	for _, uid := range []int{0, 1000} {
		o := &Options{Command: []string{"true"}, Memory: 1 << 20, CPUs: 0.005, Pids: 3, Env: []string{"GIVEN=1", "PASSED", "ABSENT"}, User: "12345:7"}
		s, err := o.Spec(&Caller{UID: uid, GID: uid, Dir: "/usr", Environ: []string{"PATH=/p", "PASSED=2", "SECRET=3"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := spec.ParseChecked(spec.Format(s, "")); err != nil {
			t.Error(err)
		}
		if env := strings.Join(s.Process.Env, " "); env != "PATH=/p HOME=/ container=berth GIVEN=1 PASSED=2" {
			t.Errorf("environment %q", env)
		}
		if q, p := *s.Linux.Resources.CPU.Quota, *s.Linux.Resources.CPU.Period; q != 5000 || p != 1_000_000 {
			t.Errorf("--cpus 0.005 is %d of %d", q, p)
		}
		if maps := s.Linux.UIDMappings; (uid == 0) != (len(maps) == 0) || uid != 0 && (maps[0].ContainerID != 12345 || maps[0].HostID != 1000) {
			t.Errorf("mappings %+v", maps)
		}
		for i, m := range s.Mounts {
			for _, before := range s.Mounts[:i] {
				if strings.HasPrefix(before.Destination, m.Destination+"/") {
					t.Errorf("%s is mounted after %s, which it covers", m.Destination, before.Destination)
				}
			}
		}
	}
}

func TestShowsDir(t *testing.T) {
	tmp, err := os.MkdirTemp("/tmp", "berth-test-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	tmp = realPath(tmp)
	for _, test := range []struct {
		o    Options
		dir  string
		want dirShow
	}{
		{Options{}, "/usr/share", inOverlay}, {Options{}, "/", notShown}, {Options{}, "/proc/self", notShown}, {Options{Rootfs: "/x"}, "/usr", notShown},
		{Options{Binds: []Bind{{Path: "/usr"}}}, "/usr/share", notShown}, {Options{Tmp: []string{"/usr/share"}}, "/usr/share", notShown},
		{Options{Binds: []Bind{{Path: "/usr/share/x"}}}, "/usr/share", inOverlay},
		{Options{}, realPath("/tmp"), notShown}, {Options{}, tmp, asItIs}, {Options{}, realPath("/run"), notShown}, {Options{}, realPath("/run") + "/lock", notShown},
		{Options{}, "/usr/missing", notShown},
	} {
		if got := test.o.dir(test.dir); got != test.want {
			t.Errorf("%+v in %s: %v, want %v", test.o, test.dir, got, test.want)
		}
	}
}

func TestWhoseLimit(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	for _, test := range []struct {
		name  string
		limit int64
		stats cgroup.MemoryStats
		own   bool
		none  bool
	}{
		{name: "nobody killed", limit: 1, stats: cgroup.MemoryStats{Events: &cgroup.MemoryEvents{OOM: n(3), OOMKill: n(0)}}, none: true},
		{name: "v2, own", limit: 1 << 20, stats: cgroup.MemoryStats{Events: &cgroup.MemoryEvents{OOM: n(1), OOMKill: n(1)}}, own: true},
		{name: "v2, above", limit: 1 << 20, stats: cgroup.MemoryStats{Events: &cgroup.MemoryEvents{OOM: n(0), OOMKill: n(1)}}},
		{name: "v1, own", limit: 1 << 20, stats: cgroup.MemoryStats{Counter: cgroup.Counter{Failures: n(9)}, Events: &cgroup.MemoryEvents{OOMKill: n(1)}}, own: true},
		{name: "v1, own, without swap", limit: 1 << 20, own: true,
			stats: cgroup.MemoryStats{Counter: cgroup.Counter{Failures: n(0)}, MemoryAndSwap: &cgroup.Counter{Failures: n(9)}, Events: &cgroup.MemoryEvents{OOMKill: n(1)}}},
		{name: "v1, the machine's", stats: cgroup.MemoryStats{Events: &cgroup.MemoryEvents{OOMKill: n(1)}}},
	} {
		var r Report
		r.Fill(&Options{Memory: test.limit}, &cgroup.Stats{Memory: &test.stats}, &unix.Rusage{})
		switch {
		case test.none != (r.OOM == nil):
			t.Errorf("%s: %+v", test.name, r.OOM)
		case r.OOM != nil && test.own != strings.HasPrefix(r.OOM.By, "--memory"):
			t.Errorf("%s: by %s", test.name, r.OOM.By)
		}
	}
}

func TestBlame(t *testing.T) {
	o := &Options{}
	for in, want := range map[string]string{
		`config.json: /process/args/0: exec: "x": no such file`: `exec: "x": no such file`,
		`config.json: /linux/resources/memory/limit: too small`: `--memory: too small`,
		`create: config.json: /process/cwd: no such directory`:  `create: --workdir: no such directory`,
	} {
		if got := o.Blame(in); got != want {
			t.Errorf("%q becomes %q", in, got)
		}
	}
}

// The current directory is known by a path without links.
func TestAbs(t *testing.T) {
	dir := realPath(t.TempDir())
	if err := os.Mkdir(dir+"/real", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir + "/link")
	t.Setenv("PWD", dir+"/link")
	for in, want := range map[string]string{".": dir + "/real", "x/../y": dir + "/real/y", "..": dir, "/a/../b/": "/b"} {
		if got, err := Abs(in); err != nil || got != want {
			t.Errorf("%s: %s, %v", in, got, err)
		}
	}
	if b, err := ParseBind(".", true); err != nil || b.Source != dir+"/real" || b.Path != dir+"/real" {
		t.Errorf("%+v, %v", b, err)
	}
}

func TestStopped(t *testing.T) {
	n := func(v uint64) *uint64 { return &v }
	killed := &OOM{Kills: 2, By: "--memory 16.0M"}
	for _, test := range []struct {
		report Report
		want   string
	}{
		{Report{Status: 137, Signal: "SIGKILL"}, ""},
		{Report{PidsRefused: n(0), PidsLimit: n(5)}, ""},
		{Report{Status: 124, Signal: "SIGKILL", TimedOut: true, Wall: 1500 * time.Millisecond}, "berth box: killed by --timeout after 1.50s\n"},
		{Report{Status: 137, Signal: "SIGKILL", OOM: killed}, "berth box: OOM-killed, by --memory 16.0M\n"},
		{Report{OOM: killed}, "berth box: 2 processes OOM-killed, by --memory 16.0M\n"},
		{Report{Status: 2, PidsRefused: n(1), PidsLimit: n(5)}, "berth box: refused to create a process 1 times, by --pids 5\n"},
	} {
		if got := test.report.Stopped(); got != test.want {
			t.Errorf("%+v: %q, want %q", test.report, got, test.want)
		}
	}
}
