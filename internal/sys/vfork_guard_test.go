//go:build amd64 || arm64

package sys

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// frozen makes a cgroup that stands still, and skips where that can't be.
func frozen(t *testing.T) (fd int, dir string) {
	t.Helper()
	for _, at := range []string{"/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		if _, err := os.Stat(at + "/cgroup.procs"); err != nil {
			continue
		}
		dir = filepath.Join(at, "berth-vfork-"+strconv.Itoa(os.Getpid()))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Skip("no cgroup of version 2 can be made: ", err)
		}
		t.Cleanup(func() {
			if err := unix.Rmdir(dir); err != nil {
				t.Error(err)
			}
		})
		if err := os.WriteFile(dir+"/cgroup.freeze", []byte("1"), 0); err != nil {
			t.Skip(err)
		}
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fd, dir
	}
	t.Skip("no cgroup of version 2 here")
	return -1, ""
}

// A child that is cloned into a frozen cgroup stands still. Others of the program go on, on one processor too, and may let
// it go, or give it up.
func TestVforkIntoAFrozenCgroup(t *testing.T) {
	needClone3(t)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	fd, dir := frozen(t)
	image, err := unix.Open("/bin/true", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(image)
	enough := errors.New("that was long enough")
	v := Vfork{Cgroup: fd, Files: []uintptr{0, 1, 2}, Image: image, Name: "true", Await: func(int) error { return enough }}
	if _, _, _, err := v.Start(); !errors.Is(err, enough) {
		t.Errorf("given up, it says %v", err)
	}
	v.Await = func(done int) error {
		if err := os.WriteFile(dir+"/cgroup.freeze", []byte("0"), 0); err != nil {
			return err
		}
		_, err := Poll([]unix.PollFd{{Fd: int32(done), Events: unix.POLLIN}}, -1)
		return err
	}
	_, _, pidfd, err := v.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	if ended, err := WaitID(unix.P_PIDFD, pidfd, 0); err != nil || ended.Code != CldExited || ended.Status != 0 {
		t.Errorf("it ended as %+v, %v", ended, err)
	}
}
