package rootfs

import (
	"os"
	"slices"
	"testing"
)

func TestParseMounts(t *testing.T) {
	got := parseMounts("83 46 254:0 /srv/a\\040b /mnt/c\\011d ro,relatime shared:1 master:2 - ext4 /dev/vda rw\n" +
		"84 83 0:44 / /proc rw - proc proc rw\n" +
		"odd line\nx 1 2 / / rw - proc proc rw\n85 1 2 / / rw\n")
	want := []MountEntry{{83, "/srv/a b", "/mnt/c\td", "ext4"}, {84, "/", "/proc", "proc"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestMountOfAFile(t *testing.T) {
	mounts, err := MountsOf(os.Getpid())
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
	i := slices.IndexFunc(mounts, func(m MountEntry) bool { return m.ID == id })
	if i < 0 || mounts[i].Type != "proc" {
		t.Errorf("/proc/self/status is on mount %d, of %+v", id, mounts)
	}
}
