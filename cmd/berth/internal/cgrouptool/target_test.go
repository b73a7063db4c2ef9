package cgrouptool

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	for _, test := range []struct {
		text, path  string
		controllers []string
		wrong       bool
	}{
		{text: "demo", path: "demo"},
		{text: "/demo/a", path: "/demo/a"},
		{text: "/a:b", path: "/a:b"},
		{text: "a/b:c", path: "a/b:c"},
		{text: "cpu,memory:/demo", path: "/demo", controllers: []string{"cpu", "memory"}},
		{text: "cpu:demo:1", path: "demo:1", controllers: []string{"cpu"}},
		{text: "*:/demo", path: "/demo"},
		{text: ":/demo", path: "/demo", controllers: []string{"unified"}},
		{text: "name=systemd:/demo", path: "/demo", controllers: []string{"name=systemd"}},
		{text: "", wrong: true},
		{text: "cpu:", wrong: true},
		{text: "cpu,:/demo", wrong: true},
		{text: "cpu,*:/demo", wrong: true},
		{text: "cpu memory:/demo", wrong: true},
	} {
		got, err := ParseTarget(test.text)
		if (err != nil) != test.wrong {
			t.Errorf("%q: %v", test.text, err)
		}
		if err == nil && (got.Path != test.path || !slices.Equal(got.Controllers, test.controllers)) {
			t.Errorf("%q: %+v", test.text, got)
		}
	}
}

func FuzzParseTarget(f *testing.F) {
	f.Add("cpu,memory:/demo")
	f.Add(":::")
	f.Fuzz(func(t *testing.T, text string) {
		target, err := ParseTarget(text)
		if err != nil {
			return
		}
		if target.Path == "" || !strings.HasSuffix(text, target.Path) {
			t.Errorf("%q: path %q", text, target.Path)
		}
		if slices.Contains(target.Controllers, "") {
			t.Errorf("%q: %q", text, target.Controllers)
		}
	})
}

// A command line for one version finds its way on the other.
func TestHomes(t *testing.T) {
	all := []string{"cpu", "cpuacct", "blkio", "io", "freezer", "devices", "nonsense"}
	for _, test := range []struct {
		files map[string]string
		want  []string
	}{
		{unifiedFiles, []string{"cpu", "unified", "io", "io", "unified", "unified", "nonsense"}},
		{oddFiles, []string{"cpu", "cpuacct", "blkio", "blkio", "freezer", "devices", "nonsense"}},
	} {
		tools := fake(t, test.files)
		if got := homes(tools.Host, all); !slices.Equal(got, test.want) {
			t.Errorf("%v: %q, want %q", tools.Host.Mode(), got, test.want)
		}
	}
}

func TestParseAccount(t *testing.T) {
	for text, want := range map[string]Account{
		"1000:100": {1000, 100},
		"1000":     {1000, -1},
		":100":     {-1, 100},
		"root":     {0, -1},
		"root:0":   {0, 0},
	} {
		got, err := ParseAccount(text)
		if err != nil && strings.Contains(text, "root") {
			if _, err := os.Stat("/etc/passwd"); err != nil {
				continue // there are no names here
			}
		}
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", ":", "nobody-has-this-name", "0:nor-this-one"} {
		if _, err := ParseAccount(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestBegun(t *testing.T) {
	home := maps.Clone(hybridFiles)
	home["proc/self/cgroup"] = "5:pids:/\n4:memory:/\n3:cpu,cpuacct:/\n1:name=systemd:/\n0::/\n"
	home["sys/fs/cgroup/pids/berth/demo/inner/cgroup.procs"] = ""
	for _, test := range []struct {
		files      map[string]string
		text, want string
	}{
		{unifiedFiles, "/", "/system.slice /system.slice/"}, // not the one whose name can't be typed
		{unifiedFiles, "/sys", "/system.slice /system.slice/"},
		{unifiedFiles, "/system.slice/", "/system.slice/ssh.service"},
		{unifiedFiles, "/system.slice/x", ""},
		{unifiedFiles, "/nowhere/", ""},
		{unifiedFiles, "memory:/sys", "memory:/system.slice memory:/system.slice/"},
		{unifiedFiles, "freezer:/sys", "freezer:/system.slice freezer:/system.slice/"},
		{unifiedFiles, ":/sys", ":/system.slice :/system.slice/"},
		{unifiedFiles, "*:/sys", "*:/system.slice *:/system.slice/"},
		{unifiedFiles, "cpu,:/", ""},
		{hybridFiles, "/j", "/jobs"},
		{hybridFiles, "memory:/", "memory:/jobs"},
		{hybridFiles, "cpu:/", ""},
		{home, "", "demo demo/"},
		{home, "demo/i", "demo/inner"},
	} {
		if got := strings.Join(fake(t, test.files).Begun(test.text), " "); got != test.want {
			t.Errorf("%q: %q, want %q", test.text, got, test.want)
		}
	}
}
