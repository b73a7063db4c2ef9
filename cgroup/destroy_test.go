package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestDestroyNested(t *testing.T) {
	host := hostForTest(t)
	g, err := host.Create(testPath())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, g) })
	for _, dir := range g.Made() {
		for _, child := range []string{"a", "b/c/d", "b/e"} {
			if err := os.MkdirAll(filepath.Join(dir, child), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	below, err := host.Create(g.Path() + "/b/c/d")
	if err != nil {
		t.Fatal(err)
	}
	defer below.Close()
	cmd := start(t, below, "sleep")
	if pids, err := g.AllProcs(); err != nil || !slices.Equal(pids, []int{cmd.Process.Pid}) {
		t.Errorf("processes %v, %v", pids, err)
	}
	host.Timeout = time.Millisecond
	err = g.Destroy()
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), strconv.Itoa(cmd.Process.Pid)) {
		t.Fatalf("destroy with a process in it: %v", err)
	}
	host.Timeout = 10 * time.Second
	if err := g.Kill(); err != nil {
		t.Fatal(err)
	}
	// No wait in between: Destroy waits for the dying.
	if err := g.Destroy(); err != nil {
		t.Fatal(err)
	}
}

func TestPurge(t *testing.T) {
	host := hostForTest(t)
	g, err := host.Create(testPath())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removeGroup(t, g) })
	below, err := host.Create(g.Path() + "/below")
	if err != nil {
		t.Fatal(err)
	}
	start(t, below, "sleep")
	below.Close()
	if err := g.Freeze(); err != nil {
		t.Fatal(err)
	}
	again, err := host.Open(g.Path(), Made(g.Made()))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Purge(); err != nil {
		t.Fatal(err)
	}
	if _, err := host.Open(g.Path(), Made(g.Made())); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after Purge: %v", err)
	}
}

func BenchmarkCreateDestroy(b *testing.B) {
	host := hostForTest(b)
	parent, err := host.Create(testPath())
	if err != nil {
		b.Fatal(err)
	}
	defer parent.Destroy()
	for b.Loop() {
		g, err := host.Create(parent.Path() + "/x")
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Destroy(); err != nil {
			b.Fatal(err)
		}
	}
}
