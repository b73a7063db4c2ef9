package main

import (
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/inside/view"
)

// attempts are the things that "inside try VERB=ARGUMENT…" can try; arguments of one verb are
// parted by commas.
var attempts = map[string]func(args []string) (string, error){
	"read": func(a []string) (string, error) {
		f, err := os.Open(a[0])
		if err != nil {
			return "", err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, 4096))
		return string(data), err
	},
	// write opens an existing file and writes the second argument, or nothing: opening is often the
	// test.
	"write": func(a []string) (string, error) {
		f, err := os.OpenFile(a[0], os.O_WRONLY, 0)
		if err != nil {
			return "", err
		}
		defer f.Close()
		if len(a) > 1 {
			_, err = f.WriteString(a[1])
		}
		return "", err
	},
	"connect": func(a []string) (string, error) {
		c, err := net.Dial("unix", a[0])
		if err != nil {
			return "", err
		}
		return "", c.Close()
	},
	"create": func(a []string) (string, error) {
		f, err := os.OpenFile(a[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return "", err
		}
		return "", f.Close()
	},
	"mkdir":    func(a []string) (string, error) { return "", unix.Mkdir(a[0], 0o755) },
	"unlink":   func(a []string) (string, error) { return "", unix.Unlink(a[0]) },
	"readlink": func(a []string) (string, error) { return os.Readlink(a[0]) },
	"list": func(a []string) (string, error) {
		entries, err := os.ReadDir(a[0])
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, " "), err
	},
	"exec": func(a []string) (string, error) {
		out, err := exec.Command(a[0], a[1:]...).CombinedOutput()
		return string(out), err
	},
	"mknod": func(a []string) (string, error) {
		return "", unix.Mknod(a[0], unix.S_IFCHR|0o600, int(unix.Mkdev(number(a[1]), number(a[2]))))
	},
	"open-device": func(a []string) (string, error) {
		fd, err := unix.Open(a[0], unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		return "", err
	},
	"mount": func(a []string) (string, error) { return "", unix.Mount("try", a[0], a[1], 0, "") },
	"remount-rw": func(a []string) (string, error) {
		return "", unix.Mount("", a[0], "", unix.MS_REMOUNT|unix.MS_BIND, "")
	},
	"umount": func(a []string) (string, error) { return "", unix.Unmount(a[0], unix.MNT_DETACH) },
	"chown":  func(a []string) (string, error) { return "", unix.Lchown(a[0], int(number(a[1])), int(number(a[2]))) },
	"chmod": func(a []string) (string, error) {
		mode, err := strconv.ParseUint(a[1], 8, 32)
		if err != nil {
			return "", err
		}
		return "", os.Chmod(a[0], os.FileMode(mode))
	},
	"utimes":      func(a []string) (string, error) { return "", unix.Utimes(a[0], make([]unix.Timeval, 2)) },
	"sethostname": func(a []string) (string, error) { return "", unix.Sethostname([]byte(a[0])) },
	"kill":        func(a []string) (string, error) { return "", unix.Kill(int(number(a[0])), unix.Signal(number(a[1]))) },
	"unshare":     func(a []string) (string, error) { return "", unix.Unshare(int(number(a[0]))) },
	"chroot":      func(a []string) (string, error) { return "", unix.Chroot(a[0]) },
	// escape takes the root off and enters the mount namespace anew, in what lies below.
	"escape": func([]string) (string, error) {
		fd, err := unix.Open("/proc/self/ns/mnt", unix.O_RDONLY, 0)
		if err == nil {
			err = unix.Unshare(unix.CLONE_FS)
		}
		if err == nil {
			err = unix.Unmount("/", unix.MNT_DETACH)
		}
		if err != nil {
			return "", err
		}
		return "", unix.Setns(fd, unix.CLONE_NEWNS)
	},
	// syscall makes a call by number, with up to six numbers as arguments.
	"syscall": func(a []string) (string, error) {
		var n [7]uintptr
		for i, word := range a {
			v, err := strconv.ParseUint(word, 0, 64)
			if err != nil {
				return "", err
			}
			n[i] = uintptr(v)
		}
		r, _, errno := unix.RawSyscall6(n[0], n[1], n[2], n[3], n[4], n[5], n[6])
		if errno != 0 {
			return "", errno
		}
		return strconv.FormatUint(uint64(r), 10), nil
	},
	"clock": func(a []string) (string, error) {
		var ts unix.Timespec
		err := unix.ClockGettime(int32(number(a[0])), &ts)
		return strconv.FormatInt(ts.Sec, 10), err
	},
	// fd reads from, or writes to, a descriptor that the process was started with.
	"read-fd": func(a []string) (string, error) {
		buf := make([]byte, 256)
		n, err := unix.Read(int(number(a[0])), buf)
		return string(buf[:max(n, 0)]), err
	},
	"write-fd": func(a []string) (string, error) {
		_, err := unix.Write(int(number(a[0])), []byte(a[1]))
		return "", err
	},
	// memory touches so many bytes.
	"memory": func(a []string) (string, error) {
		block := make([]byte, number(a[0]))
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		return strconv.Itoa(len(block)), nil
	},
}

func number(word string) uint32 {
	n, err := strconv.ParseUint(word, 0, 32)
	if err != nil {
		fail("not a number: " + word)
	}
	return uint32(n)
}

func try(words []string) []view.Attempt {
	var out []view.Attempt
	for _, word := range words {
		verb, rest, _ := strings.Cut(word, "=")
		attempt, known := attempts[verb]
		if !known {
			fail("nothing is known about trying " + verb)
		}
		result, err := attempt(strings.Split(rest, ","))
		out = append(out, view.Attempt{What: word, Errno: errnoName(err), Result: result})
	}
	return out
}

// errnoName is the name of the errno behind err, "" for nil, and the error's own words where there
// is no errno.
func errnoName(err error) string {
	if err == nil {
		return ""
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// send says the words after the first to the unix socket that the first names.
func send(words []string) {
	c, err := net.Dial("unix", words[0])
	if err != nil {
		fail(err.Error())
	}
	defer c.Close()
	if _, err := c.Write([]byte(strings.Join(words[1:], " "))); err != nil {
		fail(err.Error())
	}
}
