package main

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/berth-runtime/berth/cgroup"
	"github.com/berth-runtime/berth/engine/container"
)

func TestIsPattern(t *testing.T) {
	for name, want := range map[string]bool{
		"web": false, "web-1.a_b+c": false, "web-*": true, "web-?": true, "web-[12]": true, `web\*`: true, "": false,
	} {
		if got := isPattern(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// Without --root, containers of other engines are shown, by their engine and id; with it only those
// of that directory.
func TestTopShowsOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a cgroup")
	}
	host, err := cgroup.Detect()
	if err != nil {
		t.Skip(err)
	}
	const id = "0123456789ab"
	top := fmt.Sprintf("/berth-top-test-%d", os.Getpid())
	g, err := host.Create(top + "/docker/" + id)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() {
		above, err := host.Open(top, cgroup.Made(g.Made()))
		if err == nil {
			err = above.Purge()
		}
		if err != nil {
			t.Error(err)
		}
	})
	sleep := exec.Command("sleep", "900")
	if err := g.Start(sleep); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sleep.Process.Kill()
		sleep.Wait()
	})
	r := &container.Runtime{Root: t.TempDir()}
	shown := func(p *program, patterns ...string) (paths []string) {
		t.Helper()
		list, err := p.groups(r, host, patterns)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list {
			if n.Name == "docker/"+id {
				paths = append(paths, n.Path)
			}
		}
		return paths
	}
	want := []string{top + "/docker/" + id}
	for _, patterns := range [][]string{nil, {"docker/" + id}, {"docker/*"}} {
		if got := shown(&program{}, patterns...); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", patterns, got, want)
		}
	}
	if got := shown(&program{}, "podman/*"); len(got) > 0 {
		t.Errorf("of another engine: %q", got)
	}
	if got := shown(&program{rootGiven: true}); len(got) > 0 {
		t.Errorf("with --root: %q", got)
	}
}
