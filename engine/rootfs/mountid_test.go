package rootfs

import (
	"slices"
	"testing"

	"github.com/berth-runtime/berth/internal/proc/mountinfo"
)

func TestMountOfAFile(t *testing.T) {
	mounts, err := mountinfo.Of("self")
	if err != nil {
		t.Fatal(err)
	}
	root, err := Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	id, _, err := root.Mount("proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(mounts, func(m mountinfo.Entry) bool { return m.ID == id })
	if i < 0 || mounts[i].Type != "proc" {
		t.Errorf("/proc/self/status is on mount %d, of %+v", id, mounts)
	}
}
