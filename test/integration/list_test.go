package integration

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

func TestListNone(t *testing.T) {
	b := harness.New(t)
	if err := os.Mkdir(b.Root, 0o700); err != nil {
		t.Fatal(err)
	}
	if r := b.Berth("list").OK(t); len(r.Lines()) != 1 || !strings.HasPrefix(r.Stdout, "ID ") {
		t.Errorf("table %q, want the heading alone", r.Stdout)
	}
	if r := b.Berth("list", "-q").OK(t); r.Stdout != "" {
		t.Errorf("-q: %q", r.Stdout)
	}
	if r := b.Berth("list", "-f", "json").OK(t); strings.TrimSpace(r.Stdout) != "[]" {
		t.Errorf("json: %q, want an empty array", r.Stdout)
	}
}

// A non-default root is not missing just because it has no containers.
func TestListOfAMissingRoot(t *testing.T) {
	b := harness.New(t)
	missing := b.Path("no-such-root")
	for _, args := range [][]string{{"list"}, {"list", "-q"}, {"list", "-f", "json"}} {
		b.Berth(append([]string{"--root", missing}, args...)...).Fails(t, missing, "no such file or directory")
	}
}

func TestList(t *testing.T) {
	b := harness.New(t)
	created := b.Container("/inside", "hang").Create()
	running := b.Container("/inside", "hang").RunDetached()
	stopped := b.Container("/bin/true").RunDetached()
	stopped.WaitExit()

	want := map[string][2]string{
		created.ID: {"created", strconv.Itoa(created.PID)},
		running.ID: {"running", strconv.Itoa(running.PID)},
		stopped.ID: {"stopped", "0"},
	}
	lines := b.Berth("list").OK(t).Lines()
	if got := strings.Fields(lines[0]); strings.Join(got, " ") != "ID PID STATUS BUNDLE CREATED OWNER" {
		t.Errorf("heading %q", got)
	}
	if len(lines) != 4 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	for _, line := range lines[1:] {
		f := strings.Fields(line)
		if w := want[f[0]]; f[2] != w[0] || f[1] != w[1] || f[5] != "root" {
			t.Errorf("line %q, want %v", line, w)
		}
		// The columns begin where their headings do.
		if i := strings.Index(lines[0], "STATUS"); !strings.HasPrefix(line[i:], f[2]) {
			t.Errorf("the columns of %q are not below those of %q", line, lines[0])
		}
	}

	ids := b.Berth("list", "--quiet").OK(t).Lines()
	if len(ids) != 3 {
		t.Errorf("--quiet: %q", ids)
	}
	for _, id := range ids {
		if _, ok := want[id]; !ok {
			t.Errorf("--quiet: unknown %q", id)
		}
	}

	for _, flag := range [][]string{{"-f", "json"}, {"--format", "json"}, {"--format=json"}} {
		var states []harness.State
		harness.Decode(t, b.Berth(append([]string{"list"}, flag...)...).OK(t).Stdout, &states)
		if len(states) != 3 {
			t.Errorf("%v: %+v", flag, states)
		}
		for _, s := range states {
			if w := want[s.ID]; string(s.Status) != w[0] || strconv.Itoa(s.Pid) != w[1] || s.Bundle == "" || s.Created == "" || s.Owner != "root" {
				t.Errorf("%v: %+v, want %v", flag, s, w)
			}
		}
	}
	b.Berth("list", "--format", "xml").Fails(t, "xml")
}
