package compile_test

import (
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/compile"
	"github.com/berth-runtime/berth/engine/program/refinterp"
)

// Without pivot_root all of the host's mounts are taken off, but for those that have gone since
// they were listed. One that is there and can't be taken off is covered.
func TestHostMountsThatHaveGone(t *testing.T) {
	config, err := os.ReadFile("testdata/small.json")
	if err != nil {
		t.Fatal(err)
	}
	p := planOf(t, config)
	p.NoPivot = true
	facts := factsOf(p)
	facts.HostMounts = []string{"/gone", "/there", "/locked"}
	code, err := compile.Container(p, facts)
	if err != nil {
		t.Fatal(err)
	}
	var taken, covered []string
	kernel := &refinterp.Fake{FDs: []int{0, 1, 2, 3, 4}, Answer: func(c refinterp.Call, mem *refinterp.Memory) (int64, bool) {
		switch c.Nr {
		case unix.SYS_MOUNT:
			switch at, _ := mem.CString(c.Args[1]); {
			case at == "/gone":
				return -int64(unix.EINVAL), true
			case at == "/locked" && c.Args[3]&unix.MS_RDONLY != 0:
				covered = append(covered, at)
			}
		case unix.SYS_UMOUNT2:
			at, _ := mem.CString(c.Args[0])
			if at == "/locked" {
				return -int64(unix.EINVAL), true
			}
			taken = append(taken, at)
		}
		return inTheChild(c, mem)
	}}
	result, err := refinterp.Run(code.Segment(), kernel)
	if err != nil || result.Failure != nil || !result.Gone {
		t.Fatalf("%v, %+v", err, result.Failure)
	}
	if !slices.Contains(taken, "/there") || slices.Contains(taken, "/gone") || !slices.Equal(covered, []string{"/locked"}) {
		t.Errorf("taken off %q, covered %q", taken, covered)
	}
}
