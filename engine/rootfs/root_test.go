package rootfs_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/engine/rootfs"
	"golang.org/x/sys/unix"
)

// tree makes a root with a secret beside it.
func tree(t *testing.T) (dir string, root *rootfs.Root) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "root")
	must(t, os.MkdirAll(filepath.Join(dir, "etc"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "..", "secret"), []byte("outside"), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "secret"), []byte("inside"), 0o644))
	root, err := rootfs.Open(dir)
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return dir, root
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestRootIsNotLeft tries the ways out that links and dots offer.
func TestRootIsNotLeft(t *testing.T) {
	dir, root := tree(t)
	for name, target := range map[string]string{
		"up": "../secret", "deep": "etc/../../../../secret", "absolute": "/secret", "climb": "/../../secret",
	} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
		f, err := root.Open(name)
		if err != nil {
			t.Errorf("%s -> %s: %v", name, target, err)
			continue
		}
		text, _ := io.ReadAll(f)
		f.Close()
		if string(text) != "inside" {
			t.Errorf("%s -> %s led to %q", name, target, text)
		}
	}
	for _, path := range []string{"../secret", "/../secret", "etc/../../secret"} {
		f, err := root.Open(path)
		must(t, err)
		text, _ := io.ReadAll(f)
		f.Close()
		if string(text) != "inside" {
			t.Errorf("%s led to %q", path, text)
		}
	}
}

// TestMagicLinksAreNotFollowed: the links of /proc lead out of any root.
func TestMagicLinksAreNotFollowed(t *testing.T) {
	dir, root := tree(t)
	must(t, os.Symlink("/proc/self/root/etc/passwd", filepath.Join(dir, "etc", "passwd")))
	if f, err := root.Open("/etc/passwd"); err == nil {
		f.Close()
		t.Error("a link into /proc was followed")
	}
	host, err := rootfs.Open("/")
	must(t, err)
	defer host.Close()
	if f, err := host.Open("/proc/self/exe"); !errors.Is(err, unix.ELOOP) {
		if err == nil {
			f.Close()
		}
		t.Errorf("/proc/self/exe: %v, want ELOOP", err)
	}
}

// TestOnlyFilesAreOpened: opening a fifo would wait, a device could do anything.
func TestOnlyFilesAreOpened(t *testing.T) {
	dir, root := tree(t)
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	// Not even for an instant, which a device would hear of.
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(t, err)
	defer unix.Close(watch)
	_, err = unix.InotifyAddWatch(watch, filepath.Join(dir, "fifo"), unix.IN_OPEN)
	must(t, err)
	check := func(name string, f *rootfs.File, err error) {
		if !errors.Is(err, rootfs.ErrNotRegular) {
			t.Errorf("%s: %v, want %v", name, err, rootfs.ErrNotRegular)
		}
		if err == nil {
			f.Close()
		}
	}
	for _, name := range []string{"fifo", "etc", "/"} {
		f, err := root.Open(name)
		check(name, f, err)
		f, err = rootfs.OpenFile(filepath.Join(dir, name))
		check(name, f, err)
	}
	if n, err := unix.Read(watch, make([]byte, 4096)); err != unix.EAGAIN {
		t.Errorf("the fifo was opened: %d bytes, %v", n, err)
	}
	if _, err := root.Open("absent"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

// What has no length is empty: to read a file of procfs may wait for ever.
func TestFilesAreReadAsFarAsTheyAreLong(t *testing.T) {
	dir, root := tree(t)
	host, err := rootfs.Open("/")
	must(t, err)
	defer host.Close()
	name := filepath.Join(dir, "etc/file")
	must(t, os.WriteFile(name, []byte("text"), 0o644))
	growing, err := root.Open("etc/file")
	must(t, err)
	must(t, os.WriteFile(name, []byte("longer text"), 0o644))
	proc, err := host.Open("/proc/uptime")
	must(t, err)
	for f, want := range map[*rootfs.File]string{growing: "long", proc: ""} {
		text, err := io.ReadAll(f)
		if err != nil || string(text) != want {
			t.Errorf("%s: %q, %v; want %q", f.Name(), text, err, want)
		}
		must(t, f.Close())
	}
}

func TestUsers(t *testing.T) {
	const passwd = "# comment\nroot:x:0:0:root:/root:/bin/sh\n\nbroken\napp:x:1000:1001:The App:/home/app:/bin/sh\nnan:x:a:b::/:\n+nis\napp2:x:1000:5::/second:\n"
	u, err := rootfs.UserByID(strings.NewReader(passwd), 1000)
	if err != nil || u != (rootfs.User{Name: "app", UID: 1000, GID: 1001, Home: "/home/app"}) {
		t.Errorf("by id: %+v, %v", u, err)
	}
	if u, err := rootfs.UserByName(strings.NewReader(passwd), "app2"); err != nil || u.Home != "/second" {
		t.Errorf("by name: %+v, %v", u, err)
	}
	if _, err := rootfs.UserByName(strings.NewReader(passwd), "nan"); !errors.Is(err, rootfs.ErrNoUser) {
		t.Errorf("an entry without numbers: %v", err)
	}
	const group = "root:x:0:\nwheel:x:10:app,root\nvideo:x:44:other,app\napps:x:1001:\n"
	if ids, err := rootfs.GroupsOf(strings.NewReader(group), "app"); err != nil || len(ids) != 2 || ids[0] != 10 || ids[1] != 44 {
		t.Errorf("groups of app: %v, %v", ids, err)
	}
	if id, err := rootfs.GroupByName(strings.NewReader(group), "video"); err != nil || id != 44 {
		t.Errorf("video: %d, %v", id, err)
	}
}

func FuzzUsers(f *testing.F) {
	f.Add("root:x:0:0:root:/root:/bin/sh\n", uint32(0))
	f.Add(":::::::", uint32(7))
	f.Add("a:\x00:7:7:"+strings.Repeat(":", 100)+"\nafter:x:7:7::/:\n", uint32(7))
	f.Fuzz(func(t *testing.T, text string, uid uint32) {
		if u, err := rootfs.UserByID(strings.NewReader(text), uid); err == nil && u.UID != uid {
			t.Errorf("asked for %d, found %+v", uid, u)
		}
		_, _ = rootfs.GroupsOf(strings.NewReader(text), "root")
	})
}

func TestCopyTree(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(from, "a/b"), 0o750))
	must(t, os.WriteFile(filepath.Join(from, "a/b/file"), []byte("text"), 0o640))
	must(t, os.Symlink("../../outside", filepath.Join(from, "a/link")))
	must(t, unix.Mkfifo(filepath.Join(from, "fifo"), 0o604))
	open := func(dir string) int {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		must(t, err)
		t.Cleanup(func() { unix.Close(fd) })
		return fd
	}
	must(t, rootfs.CopyTree(open(from), open(to), 0))
	text, err := os.ReadFile(filepath.Join(to, "a/b/file"))
	if err != nil || string(text) != "text" {
		t.Errorf("file: %q, %v", text, err)
	}
	if target, err := os.Readlink(filepath.Join(to, "a/link")); err != nil || target != "../../outside" {
		t.Errorf("link: %q, %v", target, err)
	}
	for name, mode := range map[string]fs.FileMode{"a/b": 0o750 | fs.ModeDir, "a/b/file": 0o640, "fifo": 0o604 | fs.ModeNamedPipe} {
		if info, err := os.Lstat(filepath.Join(to, name)); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want mode %v", name, info, err, mode)
		}
	}
}

// What others may put into a directory is read only if it is a file of a certain length at most,
// and in that directory.
func TestReadAt(t *testing.T) {
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(dir, "file"), []byte("0123456789"), 0o600))
	must(os.Symlink("file", filepath.Join(dir, "link")))
	must(unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	must(err)
	defer unix.Close(fd)
	if data, err := rootfs.ReadAt(fd, "file", 10); string(data) != "0123456789" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	for name, want := range map[string]error{"link": unix.ELOOP, "fifo": rootfs.ErrNotRegular, "none": unix.ENOENT, "../" + filepath.Base(dir) + "/file": unix.EXDEV} {
		if _, err := rootfs.ReadAt(fd, name, 10); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if _, err := rootfs.ReadAt(fd, "file", 9); err == nil {
		t.Error("more was read than is allowed")
	}
	f, err := rootfs.OpenFile(filepath.Join(dir, "file"))
	must(err)
	defer f.Close()
	for most, want := range map[int64]string{3: "789", 10: "0123456789", 11: "0123456789"} {
		if data, err := f.Tail(most); string(data) != want || err != nil {
			t.Errorf("the last %d bytes: %q, %v", most, data, err)
		}
	}
}
