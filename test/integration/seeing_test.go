package integration

import (
	"strings"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/berth-runtime/berth/test/harness"
)

func TestInspect(t *testing.T) {
	harness.Controller(t, "pids")
	b := harness.New(t)
	c := b.Container("/inside", "hang")
	c.Spec.Linux.Resources.Pids = &specs.LinuxPids{Limit: ptr(int64(12))}
	c.RunDetached()
	var got struct {
		State  struct{ Status string }
		Limits []struct{ File, Set, Now, Pointer string }
		Mounts []struct{ Path, Type string }
		Spaces []struct {
			Type   string
			Shared bool
		} `json:"namespaces"`
		Plan struct{ Sections []struct{ Title string } }
	}
	harness.Decode(t, c.Command("inspect", []string{"--json"}).Run().OK(t).Stdout, &got)
	if len(got.Limits) != 1 || got.Limits[0].File != "pids.max" || got.Limits[0].Now != "12" || got.Limits[0].Pointer != "/linux/resources/pids/limit" {
		t.Errorf("limits %+v", got.Limits)
	}
	shared := map[string]bool{}
	for _, n := range got.Spaces {
		shared[n.Type] = n.Shared
	}
	if !shared["user"] || shared["mnt"] || shared["pid"] || got.State.Status != "running" || len(got.Mounts) < 5 || len(got.Plan.Sections) < 4 {
		t.Errorf("%+v", got)
	}
	if text := c.Command("inspect", nil).Run().OK(t).Stdout; !strings.Contains(text, "pids.max: 12") {
		t.Errorf("%s", text)
	}
	b.Berth("inspect", "nobody").Fails(t, "container does not exist")
}

// Why a container came to its end, where its runtime stayed to see it.
func TestInspectTellsTheEnd(t *testing.T) {
	b := harness.New(t)
	for _, test := range [][2]string{{"exit 3", "It ended: exit status 3"}, {"kill -TERM $$", "It ended: killed by SIGTERM"}} {
		c := b.Container("/bin/sh", "-c", test[0])
		harness.WithoutNamespace(c.Spec, specs.PIDNamespace)
		c.Run("--keep")
		if text := c.Command("inspect", nil).Run().OK(t).Stdout; !strings.Contains(text, test[1]+"\n") {
			t.Errorf("%s: %s", test[0], text)
		}
		c.Delete()
	}
}

func TestTop(t *testing.T) {
	b := harness.New(t)
	one := b.Container("/inside", "hang").RunDetached()
	b.Container("/inside", "hang").RunDetached()
	var rows []struct {
		Path  string
		Tasks *uint64
	}
	harness.Decode(t, b.Berth("top", "-d", "0.1", "--json").OK(t).Stdout, &rows)
	if len(rows) != 2 {
		t.Errorf("%+v", rows)
	}
	harness.Decode(t, b.Berth("top", "-d", "0.1", "--json", "*-1").OK(t).Stdout, &rows)
	if len(rows) != 1 || rows[0].Path != one.ID {
		t.Errorf("%+v", rows)
	}
	if text := b.Berth("top", "-d", "0.1").OK(t).Stdout; !strings.HasPrefix(text, "CONTAINER") || strings.Count(text, "\n") != 3 || strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
	b.Berth("top", "[").Fails(t, "syntax error in pattern")
}

// In a pipe events are JSON; people may ask for lines there too.
func TestEventsForPeople(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	r := c.Command("events", []string{"--stats", "--json=false"}).Run().OK(t)
	if !strings.Contains(r.Stdout, c.ID+"  cpu ") || strings.Contains(r.Stdout, "{") {
		t.Errorf("%q", r.Stdout)
	}
}
