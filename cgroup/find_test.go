package cgroup

import (
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/berth-runtime/berth/internal/proc/mountinfo"
	"golang.org/x/sys/unix"
)

// What is found where hierarchies are on nearly all machines is what the table of all mounts would
// have told, also where one is hidden, read-only, in part or elsewhere.
func TestFoundInPlaceIsWhatTheTableTells(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	if _, err := mountinfo.Below("/sys/fs/cgroup"); err != nil {
		t.Skip("needs listmount(2) and statmount(2): ", err)
	}
	inNamespaces(t, makeGroup(t, host, Enable()), "mount", "found:")
}

// The table of all mounts is as long as there are containers: a plain host's is not read.
func TestTableIsNotRead(t *testing.T) {
	host := hostForTest(t)
	needRoot(t, host)
	if !new(Host).findInPlace() {
		t.Skip("needs all hierarchies below /sys/fs/cgroup, and a kernel that lists them (Linux 6.11)")
	}
	inNamespaces(t, makeGroup(t, host, Enable()), "mount", "blind:")
}

func init() {
	check := func(what string, err error) {
		if err != nil {
			fmt.Println(what, err)
			os.Exit(1)
		}
	}
	private := func() {
		check("private mounts:", unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		check("tmpfs:", unix.Mount("tmpfs", "/mnt", "tmpfs", 0, ""))
	}
	roles["found"] = func(string) {
		private()
		same := func(change string) {
			found, err := Detect()
			check(change, err)
			told := &Host{}
			check(change, told.findInTable())
			for i := range told.hierarchies {
				if told.hierarchies[i].Version == 2 {
					told.hierarchies[i].Controllers = found.Unified().Controllers
				}
			}
			if !reflect.DeepEqual(found.hierarchies, told.hierarchies) {
				fmt.Printf("%s: found\n%+v\nthe table tells\n%+v\n", change, found.hierarchies, told.hierarchies)
				os.Exit(1)
			}
		}
		same("as it is")
		all, err := Detect()
		check("detect:", err)
		for _, h := range all.Hierarchies() {
			at := h.Mountpoint
			check("mkdir:", os.MkdirAll("/mnt/"+h.String(), 0o755))
			check("bind:", unix.Mount(at, "/mnt/"+h.String(), "", unix.MS_BIND, ""))
			same(at + " a second time")
			check("remount:", unix.Mount("", at, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
			same(at + " read-only")
			check("hide:", unix.Mount("tmpfs", at, "tmpfs", 0, ""))
			same(at + " hidden")
			check("unmount:", unix.Unmount("/mnt/"+h.String(), 0))
			same(at + " hidden, and nowhere else")
		}
		check("hide:", unix.Mount("tmpfs", "/sys/fs", "tmpfs", 0, ""))
		same("/sys/fs hidden")
		fmt.Print("ok")
	}
	roles["blind"] = func(string) {
		private()
		before, err := Detect()
		check("detect:", err)
		check("file:", os.WriteFile("/mnt/empty", nil, 0o644))
		check("bind:", unix.Mount("/mnt/empty", fmt.Sprintf("/proc/%d/mountinfo", os.Getpid()), "", unix.MS_BIND, ""))
		after, err := Detect()
		check("detect:", err)
		if !reflect.DeepEqual(before.hierarchies, after.hierarchies) || len(after.hierarchies) == 0 {
			fmt.Printf("with the table\n%+v\nwithout\n%+v\n", before.hierarchies, after.hierarchies)
			os.Exit(1)
		}
		fmt.Print("ok")
	}
}
