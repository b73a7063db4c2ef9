package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// restoreSubtreeControl takes back, after the test, what it enables in the root.
func restoreSubtreeControl(t *testing.T, u *Hierarchy) {
	root := node{Hierarchy: u, path: "/"}
	before := subtreeControl(&root, "/", make([]byte, 512))
	t.Cleanup(func() {
		for _, name := range absent(subtreeControl(&root, "/", make([]byte, 512)), before) {
			if err := writeFile(unix.AT_FDCWD, root.full("cgroup.subtree_control"), "-"+name); err != nil {
				t.Errorf("disable %s again: %v", name, err)
			}
		}
	})
}

// loopDevice attaches a file to a free loop device.
func loopDevice(t *testing.T, size int64) (path string, major, minor int64) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(size); err != nil {
		t.Fatal(err)
	}
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no loop devices: %v", err)
	}
	defer control.Close()
	number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		t.Skipf("no free loop device: %v", err)
	}
	path = fmt.Sprintf("/dev/loop%d", number)
	loop, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no loop device: %v", err)
	}
	t.Cleanup(func() {
		unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_CLR_FD, 0)
		loop.Close()
	})
	if err := unix.IoctlSetInt(int(loop.Fd()), unix.LOOP_SET_FD, int(file.Fd())); err != nil {
		t.Skipf("the loop device takes no file: %v", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(loop.Fd()), &st); err != nil {
		t.Fatal(err)
	}
	return path, int64(unix.Major(st.Rdev)), int64(unix.Minor(st.Rdev))
}

func TestThrottleOfDirectIO(t *testing.T) {
	host := hostForTest(t)
	if host.Controller("blkio") == nil && host.Controller("io") == nil {
		t.Skip("this host has neither blkio nor io")
	}
	path, major, minor := loopDevice(t, 8<<20)
	g := makeGroup(t, host)
	device := specs.LinuxThrottleDevice{Rate: 1 << 20}
	device.Major, device.Minor = major, minor
	_, err := g.Set(&specs.LinuxResources{BlockIO: &specs.LinuxBlockIO{ThrottleReadBpsDevice: []specs.LinuxThrottleDevice{device}}})
	if err != nil {
		t.Fatal(err)
	}
	cmd := roleCommand("read:" + path)
	begin := time.Now()
	if err := g.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	// 3 MiB at 1 MiB/s; some of the first second may come at once.
	if took := time.Since(begin); took < 1500*time.Millisecond {
		t.Errorf("3 MiB at 1 MiB a second took %v", took)
	}
}
