package argname_test

import (
	"testing"

	"github.com/berth-runtime/berth/internal/argname"
	"golang.org/x/sys/unix"
)

func TestArg(t *testing.T) {
	for _, c := range []struct {
		call string
		i    int
		args []uint64
		want string
	}{
		{"mount", 3, []uint64{0, 0, 0, unix.MS_NOSUID | unix.MS_NODEV, 0}, "MS_NOSUID|MS_NODEV"},
		{"mount", 3, []uint64{0, 0, 0, unix.MS_BIND | 1<<40, 0}, "MS_BIND|0x10000000000"},
		{"mount", 3, []uint64{0, 0, 0, 0, 0}, "0"},
		{"mount", 0, []uint64{7, 0, 0, 0, 0}, ""},
		{"openat", 2, []uint64{0, 0, unix.O_CLOEXEC, 0}, "O_RDONLY|O_CLOEXEC"},
		{"openat", 2, []uint64{0, 0, unix.O_RDWR, 0}, "O_RDWR"},
		{"openat", 2, []uint64{0, 0, unix.O_PATH | unix.O_DIRECTORY, 0}, "O_DIRECTORY|O_PATH"},
		{"openat", 2, []uint64{0, 0, unix.O_TMPFILE | unix.O_WRONLY, 0}, "O_WRONLY|O_TMPFILE"},
		{"openat", 2, []uint64{0, 0, unix.O_SYNC, 0}, "O_RDONLY|O_SYNC"},
		{"openat", 3, []uint64{0, 0, 0, 0o644}, "0644"},
		{"fcntl", 2, []uint64{1, unix.F_SETFL, unix.O_NONBLOCK}, "O_RDONLY|O_NONBLOCK"},
		{"fcntl", 2, []uint64{1, unix.F_DUPFD, 3}, ""},
		{"prctl", 0, []uint64{unix.PR_CAPBSET_DROP, 21}, "PR_CAPBSET_DROP"},
		{"prctl", 1, []uint64{unix.PR_CAPBSET_DROP, 21}, "CAP_SYS_ADMIN"},
		{"prctl", 1, []uint64{unix.PR_CAPBSET_DROP, 63}, ""},
		{"prctl", 1, []uint64{unix.PR_SET_DUMPABLE, 0}, ""},
		{"prctl", 2, []uint64{unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, 5}, "CAP_KILL"},
		{"prctl", 2, []uint64{unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0}, ""},
		{"prctl", 2, []uint64{unix.PR_CAPBSET_DROP, unix.PR_CAP_AMBIENT_RAISE, 0}, ""},
		{"prctl", 0, []uint64{9999}, ""},
		{"clone", 0, []uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, "CLONE_NEWUSER|SIGCHLD"},
		{"clone", 0, []uint64{uint64(unix.SIGCHLD)}, "SIGCHLD"},
		{"unshare", 0, []uint64{unix.CLONE_NEWTIME | unix.CLONE_NEWNS}, "CLONE_NEWNS|CLONE_NEWTIME"},
		{"socket", 1, []uint64{unix.AF_INET, unix.SOCK_RAW | unix.SOCK_CLOEXEC}, "SOCK_RAW|SOCK_CLOEXEC"},
		{"socket", 1, []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET}, "SOCK_SEQPACKET"},
		{"socket", 1, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM}, "SOCK_DGRAM"},
		{"mknodat", 2, []uint64{0, 0, unix.S_IFCHR | 0o666, 0x103}, "S_IFCHR|0666"},
		{"mknodat", 3, []uint64{0, 0, unix.S_IFCHR | 0o666, 0x103}, "makedev(1, 3)"},
		{"kill", 1, []uint64{1, uint64(unix.SIGKILL)}, "SIGKILL"},
		{"rt_sigaction", 0, []uint64{33}, ""},
		{"nosuchcall", 0, []uint64{1}, ""},
	} {
		if got := argname.Arg(c.call, c.args, c.i); got != c.want {
			t.Errorf("%s %#x, argument %d: %q, want %q", c.call, c.args, c.i, got, c.want)
		}
	}
}

func TestWord(t *testing.T) {
	for _, c := range []struct {
		call    string
		i, word int
		v       uint64
		want    string
	}{
		{"openat2", 2, 0, unix.O_PATH | unix.O_CLOEXEC, "O_CLOEXEC|O_PATH"},
		{"openat2", 2, 2, unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS, "RESOLVE_NO_MAGICLINKS|RESOLVE_BENEATH"},
		{"mount_setattr", 3, 0, unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID, "MOUNT_ATTR_RDONLY|MOUNT_ATTR_NOSUID"},
		{"mount_setattr", 3, 1, unix.MOUNT_ATTR__ATIME, "MOUNT_ATTR__ATIME"},
		{"mount_setattr", 3, 0, unix.MOUNT_ATTR_NOATIME, "MOUNT_ATTR_NOATIME"},
		{"mount_setattr", 3, 2, unix.MS_PRIVATE, "MS_PRIVATE"},
		{"mount_setattr", 3, 3, 5, ""},
	} {
		if got := argname.Word(c.call, c.i, c.word, c.v); got != c.want {
			t.Errorf("%s, argument %d, word %d: %q, want %q", c.call, c.i, c.word, got, c.want)
		}
	}
}
