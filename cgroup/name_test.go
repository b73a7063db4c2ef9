package cgroup

import (
	"strings"
	"testing"
)

func TestEscapeName(t *testing.T) {
	tests := map[string]string{
		"web": "web", "tasks": "_tasks", "notify_on_release": "_notify_on_release", "release_agent": "_release_agent",
		"cgroup.procs": "_cgroup.procs", "cpu.shares": "_cpu.shares", "memory.x": "_memory.x", "io.max": "_io.max",
		"_x": "__x", ".hidden": "_.hidden", "": "_", "foo.service": "foo.service", "cpu": "cpu", "tasks2": "tasks2",
		"irq.pressure": "_irq.pressure", "my.cpu.x": "my.cpu.x",
	}
	for name, want := range tests {
		if got := escapeName(name); got != want {
			t.Errorf("escapeName(%q) = %q, want %q", name, got, want)
		}
		if back := unescapeName(escapeName(name)); back != name {
			t.Errorf("%q comes back as %q", name, back)
		}
	}
}

func TestCleanPath(t *testing.T) {
	for path, want := range map[string]string{"/": "/", "//": "/", "/a": "/a", "/a//b/./c/": "/a/b/c", "/...": "/..."} {
		if got, err := cleanPath(path); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", path, got, err, want)
		}
	}
	for _, bad := range []string{"", "a", "/a/..", "/../a", "/a\nb", "/a\x00", "/" + strings.Repeat("x", 256)} {
		if got, err := cleanPath(bad); err == nil {
			t.Errorf("%q was taken as %q", bad, got)
		}
	}
}

func FuzzCleanPath(f *testing.F) {
	f.Add("/a/../b//c/.")
	f.Fuzz(func(t *testing.T, path string) {
		clean, err := cleanPath(path)
		if err != nil {
			return
		}
		if again, err := cleanPath(clean); err != nil || again != clean {
			t.Errorf("%q is cleaned to %q and then to %q, %v", path, clean, again, err)
		}
		if !strings.HasPrefix(clean, "/") || strings.Contains(clean+"/", "/../") {
			t.Errorf("%q is cleaned to %q", path, clean)
		}
	})
}
