package mountinfo

import (
	"os"
	"slices"
	"testing"
)

const table = "1 0 8:1 / / rw,relatime - ext4 /dev/sda rw\n" +
	"2 1 8:2 / /srv rw - ext4 /dev/sdb rw\n" +
	"83 46 254:0 /srv/a\\040b /srv/with\\040space ro,nosuid shared:1 master:2 - ext4 /dev/vda rw,errors=x\n" +
	"84 83 0:44 / /proc rw - proc proc rw\n" +
	"85 84 0:45 / /a\u00a0b\rc rw - fuse.a\\040b  rw\n" + // the kernel escapes neither, and the source is ""
	"odd line\nx 1 0:2 / / rw - proc proc rw\n1 y 0:2 / / rw - proc proc rw\n85 1 0:2 / /\\04 rw - proc proc rw\n86 1 0:2 / / rw\n"

func TestParse(t *testing.T) {
	want := []Entry{
		{1, 0, "/", "/", "rw,relatime", "ext4", "rw"},
		{2, 1, "/", "/srv", "rw", "ext4", "rw"},
		{83, 46, "/srv/a b", "/srv/with space", "ro,nosuid", "ext4", "rw,errors=x"},
		{84, 83, "/", "/proc", "rw", "proc", "rw"},
		{85, 84, "/", "/a\u00a0b\rc", "rw", "fuse.a b", "rw"},
		{85, 1, "/", `/\04`, "rw", "proc", "rw"},
	}
	if got := Parse(table); !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got := Parse(table, "xfs", "proc"); !slices.Equal(got, append(want[3:4:4], want[5])) {
		t.Errorf("of two types: %+v", got)
	}
}

func TestHolding(t *testing.T) {
	entries := Parse(table)
	for path, want := range map[string]int{"/srv": 2, "/srvx": 1, "/srv/a/b": 2, "/srv/with space/x": 83, "/other": 1, "/": 1} {
		if got, ok := Holding(entries, path); !ok || got.ID != want {
			t.Errorf("%s lies on %+v, want mount %d", path, got, want)
		}
	}
	over := append(entries, Entry{ID: 99, Point: "/srv"})
	if got, _ := Holding(over, "/srv/a"); got.ID != 99 {
		t.Errorf("of two mounts on one point, %d is said to be the upper one", got.ID)
	}
	if _, ok := Holding(nil, "/x"); ok {
		t.Error("no mount at all holds a path")
	}
}

func TestOf(t *testing.T) {
	mounts, err := Of("self", "proc")
	if err != nil || !slices.ContainsFunc(mounts, func(e Entry) bool { return e.Point == "/proc" }) {
		t.Errorf("%+v, %v", mounts, err)
	}
	if _, err := Of("0"); !os.IsNotExist(err) && err == nil {
		t.Error("there is no process 0")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(table, "/x")
	f.Fuzz(func(t *testing.T, text, path string) {
		for _, e := range Parse(text) {
			if e.Type == "" || e.Options == "" {
				t.Errorf("%+v", e)
			}
		}
		Holding(Parse(text), path)
	})
}
