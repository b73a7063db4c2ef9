package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
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
	id := fmt.Sprintf("%06x%06x", os.Getpid(), os.Getpid()) // of this run alone, and its beginning, too
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
	// inspect knows it by its id, by the beginning of that, and as top calls it.
	for _, name := range []string{id, id[:6], "docker/" + id} {
		c := (&program{}).otherNamed(name)
		if c == nil || c.Cgroup != want[0] || c.Maker != "docker" {
			t.Errorf("%s: %+v", name, c)
			continue
		}
		if text := string(otherText(c)); !strings.HasPrefix(text, id+" is running, and was created by docker\n") || !strings.Contains(text, want[0]) {
			t.Error(text)
		}
		var fields map[string]string
		if err := json.Unmarshal(otherJSON(c), &fields); err != nil || fields["id"] != id || fields["cgroup"] != want[0] {
			t.Errorf("%v %v", err, fields)
		}
	}
	for _, name := range []string{id[:3], "x" + id, ""} {
		if c := (&program{}).otherNamed(name); c != nil {
			t.Errorf("%q: %+v", name, c)
		}
	}
	if c := (&program{rootGiven: true}).otherNamed(id); c != nil {
		t.Errorf("with --root: %+v", c)
	}
}
