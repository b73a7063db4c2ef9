// Package mountinfo holds our reader of tables of mounts against the usual library.
package mountinfo

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	usual "github.com/moby/sys/mountinfo"

	"github.com/berth-runtime/berth/internal/proc/mountinfo"
)

// compare reads a table both ways.
func compare(t *testing.T, table string) []mountinfo.Entry {
	t.Helper()
	theirs, err := usual.GetMountsFromReader(strings.NewReader(table), nil)
	if err != nil {
		t.Fatalf("%q: %v", table, err)
	}
	var want []mountinfo.Entry
	for _, m := range theirs {
		want = append(want, mountinfo.Entry{ID: m.ID, Parent: m.Parent, Root: m.Root, Point: m.Mountpoint, Options: m.Options, Type: m.FSType, Super: m.VFSOptions})
	}
	got := mountinfo.Parse(table)
	if !slices.Equal(got, want) {
		t.Errorf("%q:\n got %+v\nwant %+v", table, got, want)
	}
	return got
}

func TestTableOfThisMachine(t *testing.T) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, string(table))
}

// mangle escapes as the kernel does, in show_mountinfo: these four, and nothing else.
var mangle = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace

// FuzzParse: whatever names a mount has, the library and we read them out of the kernel's line.
func FuzzParse(f *testing.F) {
	f.Add("", "srv/a b", "", "/dev/sda")
	f.Add("a\u00a0b", "c\u2003d", "fuse.x y", "e\u0085f")
	f.Add("\r", "a\rb\vc\fd", "", "\r")
	f.Add(`a\040b`, `\134\`, "", "")
	f.Add("-", " - ", "", "-")
	f.Fuzz(func(t *testing.T, root, point, subtype, source string) {
		if strings.ContainsRune(root+point+subtype+source, 0) {
			return // no name has one
		}
		want := mountinfo.Entry{ID: 83, Parent: 46, Root: "/" + root, Point: "/" + point, Options: "rw,nosuid", Type: "fuse." + subtype, Super: "rw,size=1k"}
		line := fmt.Sprintf("83 46 0:44 %s %s rw,nosuid shared:1 master:2 - %s %s rw,size=1k\n", mangle(want.Root), mangle(want.Point), mangle(want.Type), mangle(source))
		if got := compare(t, line+line); !slices.Equal(got, []mountinfo.Entry{want, want}) {
			t.Errorf("%q is read as %+v", line, got)
		}
	})
}
