package namespace

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOf(t *testing.T) {
	seen := map[ID]string{}
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
		ours, err := Of(0, kind)
		if err != nil {
			t.Fatal(err)
		}
		// The link says the same in words.
		if text, err := os.Readlink("/proc/self/ns/" + kind); err != nil || text != kind+":["+strconv.FormatUint(ours.Ino, 10)+"]" {
			t.Errorf("%s: %+v, but the link is %q, %v", kind, ours, text, err)
		}
		if by, err := Of(os.Getpid(), kind); err != nil || by != ours {
			t.Errorf("%s by our pid: %+v, %v; want %+v", kind, by, err, ours)
		}
		fd, err := Open(0, kind)
		if err != nil {
			t.Fatal(err)
		}
		if by, err := OfFD(fd); err != nil || by != ours {
			t.Errorf("%s opened: %+v, %v; want %+v", kind, by, err, ours)
		}
		if is, err := Ours(fd, kind); err != nil || !is {
			t.Errorf("%s opened is not ours: %v", kind, err)
		}
		unix.Close(fd)
		if other := seen[ours]; other != "" || ours == (ID{}) {
			t.Errorf("%s: %+v is that of %q too", kind, ours, other)
		}
		seen[ours] = kind
	}
	const none = 1 << 30 // beyond the largest pid_max
	if id, err := Of(none, "pid"); !errors.Is(err, unix.ENOENT) || id != (ID{}) {
		t.Errorf("of no process: %+v, %v", id, err)
	}
	if fd, err := Open(none, "pid"); !errors.Is(err, unix.ENOENT) || fd != -1 || !strings.Contains(err.Error(), "/proc/1073741824/ns/pid") {
		t.Errorf("opened of no process: %d, %v", fd, err)
	}
}

func TestNewUser(t *testing.T) {
	uid := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	gid := []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	if os.Getuid() == 0 { // who may map others' ids as well
		uid = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 100000, Size: 1000}, {ContainerID: 1000, HostID: 0, Size: 1}}
		gid = []syscall.SysProcIDMap{{ContainerID: 5, HostID: 7, Size: 2}}
	}
	fd, err := NewUser(uid, gid)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		t.Skip("user namespaces can't be made here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	ours, err := Of(0, "user")
	if err != nil {
		t.Fatal(err)
	}
	if made, err := OfFD(fd); err != nil || made == ours {
		t.Errorf("made %+v, %v; ours is %+v", made, err, ours)
	}
	if is, err := Ours(fd, "user"); err != nil || is {
		t.Errorf("what was made is ours: %v, %v", is, err)
	}
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a process is left: %d, %v", pid, err)
	}
	for file, maps := range map[string][]syscall.SysProcIDMap{"uid_map": uid, "gid_map": gid} {
		cmd := exec.Command("nsenter", "--preserve-credentials", "--user=/proc/self/fd/3", "cat", "/proc/self/"+file)
		cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(dup(t, fd)), "user")}
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		cmd.ExtraFiles[0].Close()
		var want []string
		for _, m := range maps {
			// Seen from inside: the ids of the namespace above it are shown as the host has them.
			want = append(want, strconv.Itoa(m.ContainerID), strconv.Itoa(m.HostID), strconv.Itoa(m.Size))
		}
		if got := strings.Fields(string(text)); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	if fd, err := NewUser([]syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 0}}, gid); err == nil || fd != -1 {
		t.Errorf("with an empty mapping: %d, %v", fd, err)
	}
	if pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err != unix.ECHILD {
		t.Errorf("a process is left of the failure: %d, %v", pid, err)
	}
}

func dup(t *testing.T, fd int) int {
	t.Helper()
	fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestBeside(t *testing.T) {
	if !Beside(0) || !Beside(os.Getpid()) {
		t.Error("we are not beside ourselves")
	}
	const none = 1 << 30 // beyond the largest pid_max
	if Beside(none) {
		t.Error("what does not exist is beside us")
	}
}
