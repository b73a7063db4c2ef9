package mounts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/shim/internal/rpc/wire"
	"github.com/berth-runtime/berth/shim/reaper"
)

var startReaper = sync.OnceValues(reaper.Start)

// space gives a directory with a file system of its own, which can carry the upper
// directory of an overlay and have its ids mapped, and checks for left mounts.
func space(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Skipf("cannot mount a tmpfs here: %v", err)
	}
	t.Cleanup(func() {
		for _, m := range mountsBelow(t, dir+"/") {
			t.Errorf("left mounted: %s", m)
		}
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func mountsBelow(t *testing.T, prefix string) (points []string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if point := strings.Fields(line)[4]; strings.HasPrefix(point, prefix) {
			points = append(points, line)
		}
	}
	return points
}

func mkdir(t *testing.T, path ...string) string {
	t.Helper()
	dir := filepath.Join(path...)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func mountAll(t *testing.T, root string, list ...*wire.Mount) error {
	t.Helper()
	r, err := startReaper()
	if err != nil {
		t.Fatal(err)
	}
	return Mount(root, list, r)
}

func TestBindReadOnlyAndUnmount(t *testing.T) {
	dir := space(t)
	src, root := mkdir(t, dir, "src"), mkdir(t, dir, "root")
	write(t, src+"/f", "hello")
	for range 2 { // twice on top of each other
		if err := mountAll(t, root, &wire.Mount{Type: "bind", Source: src, Options: []string{"rbind", "ro", "nosuid", "rprivate"}}); err != nil {
			t.Fatal(err)
		}
	}
	if b, _ := os.ReadFile(root + "/f"); string(b) != "hello" {
		t.Fatalf("read %q", b)
	}
	if err := os.WriteFile(root+"/f", nil, 0); !errors.Is(err, unix.EROFS) {
		t.Fatalf("write: %v", err)
	}
	if err := Unmount(root); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root + "/f"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("after the unmount: %v", err)
	}
	if err := Unmount(root); err != nil {
		t.Fatal("a second unmount: ", err)
	}
	if err := Unmount(root + "/nothing"); err != nil {
		t.Fatal("unmount of what is not there: ", err)
	}
}

func TestFailureUndoesWhatWasMounted(t *testing.T) {
	dir := space(t)
	src, root := mkdir(t, dir, "src"), mkdir(t, dir, "root")
	mkdir(t, src, "sub")
	good := &wire.Mount{Type: "bind", Source: src, Options: []string{"bind"}}
	for _, bad := range []*wire.Mount{
		{Type: "bind", Source: dir + "/absent", Options: []string{"bind"}},
		{Type: "bind", Source: src, Target: "/absent", Options: []string{"bind"}},
		{Type: "nosuchfs", Source: "x"},
		{Type: "tmpfs", Source: "x", Options: []string{"X-containerd.mkfs=ext4"}},
		{Type: "tmpfs", Source: "x", Options: []string{"uidmap=0:1:2"}},
		{Type: "tmpfs", Source: "x", Options: []string{"uidmap=0:1", "gidmap=0:1:2"}},
		{Type: "tmpfs", Source: "x", Options: []string{"uidmap=0:0:0", "gidmap=0:1:2"}},
		{Type: "tmpfs", Source: "x", Target: "sub", Options: []string{"nosuchoption"}},
		{Type: "fuse.nosuchhelper-berth", Source: "x"},
	} {
		if err := mountAll(t, root, good, good, bad); err == nil {
			t.Errorf("%+v was mounted", bad)
		} else {
			t.Log(err)
		}
		if left := mountsBelow(t, root); len(left) > 0 {
			t.Fatalf("left mounted: %v", left)
		}
	}
}

func TestTargetStaysInsideTheRoot(t *testing.T) {
	dir := space(t)
	src, root := mkdir(t, dir, "src"), mkdir(t, dir, "root")
	mkdir(t, root, "inside")
	mkdir(t, dir, "outside")
	write(t, src+"/f", "x")
	for link, to := range map[string]string{"up": "../outside", "abs": dir + "/outside"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
		if err := mountAll(t, root, &wire.Mount{Type: "bind", Source: src, Target: link, Options: []string{"bind"}}); err == nil {
			t.Errorf("%s was mounted on", link)
		}
	}
	if err := mountAll(t, root, &wire.Mount{Type: "bind", Source: src, Target: "../inside", Options: []string{"bind", "ro", "private"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root + "/inside/f"); err != nil {
		t.Error(err)
	}
	if err := unix.Unmount(root+"/inside", 0); err != nil {
		t.Error(err)
	}
}

// layers makes n lower directories with a file each, under a parent whose name makes
// the options long.
func layers(t *testing.T, dir string, n int) string {
	t.Helper()
	var lower []string
	for i := range n {
		layer := mkdir(t, dir, strings.Repeat("snapshots-of-a-long-name", 4), string(rune('a'+i/26))+string(rune('a'+i%26)), "fs")
		write(t, filepath.Join(layer, string(rune('a'+i/26))+string(rune('a'+i%26))), "x")
		lower = append(lower, layer)
	}
	return "lowerdir=" + strings.Join(lower, ":")
}

func TestOverlay(t *testing.T) {
	for _, tc := range []struct {
		name   string
		layers int
		mount  func(source, target string, o *options) error
	}{
		{"few layers", 2, mountOverlay},
		{"more than a page of options", 60, mountOverlay},
		{"one by one", 60, mountLayers},
		{"relative", 60, mountRelative},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := space(t)
			root, upper, work := mkdir(t, dir, "root"), mkdir(t, dir, "upper"), mkdir(t, dir, "work")
			data := []string{layers(t, dir, tc.layers), "upperdir=" + upper, "workdir=" + work, "index=off"}
			o, err := parseOptions(append(data, "nodev"))
			if err != nil {
				t.Fatal(err)
			}
			err = tc.mount("overlay", root, o)
			if errors.Is(err, errNoLayers) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer Unmount(root)
			if entries, err := os.ReadDir(root); err != nil || len(entries) != tc.layers {
				t.Fatalf("%d entries, %v; want %d", len(entries), err, tc.layers)
			}
			write(t, root+"/new", "")
			if _, err := os.Stat(upper + "/new"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestIDMappedMounts(t *testing.T) {
	dir := space(t)
	t.Setenv("TMPDIR", t.TempDir()) // where nobody else leaves anything
	root, upper, work := mkdir(t, dir, "root"), mkdir(t, dir, "upper"), mkdir(t, dir, "work")
	lower := layers(t, dir, 2)
	maps := []string{"uidmap=0:100000:1000,1000:200000:1000", "gidmap=0:100000:65536"}
	owner := func(path string) uint32 {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		return st.Uid
	}
	src := mkdir(t, dir, "src")
	write(t, src+"/f", "")
	if err := os.Chown(src+"/f", 1001, 5); err != nil {
		t.Fatal(err)
	}
	err := mountAll(t, root, &wire.Mount{Type: "bind", Source: src, Options: append([]string{"rbind", "rprivate"}, maps...)})
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		t.Skipf("tmpfs cannot map ids on this kernel: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if uid := owner(root + "/f"); uid != 200001 {
		t.Errorf("file belongs to %d", uid)
	}
	if err := Unmount(root); err != nil {
		t.Fatal(err)
	}
	if err := mountAll(t, root, &wire.Mount{Type: "overlay", Source: "overlay",
		Options: append([]string{lower, "upperdir=" + upper, "workdir=" + work}, maps...)}); err != nil {
		t.Fatal(err)
	}
	if uid := owner(root + "/aa"); uid != 100000 {
		t.Errorf("file of a layer belongs to %d", uid)
	}
	if err := Unmount(root); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestLoop(t *testing.T) {
	dir := space(t)
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		t.Skip("no loop devices here: ", err)
	}
	image, root := dir+"/image", mkdir(t, dir, "root")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 8<<20); err != nil {
		t.Fatal(err)
	}
	r, err := startReaper()
	if err != nil {
		t.Fatal(err)
	}
	if !run(r, "mkfs.ext4", "-q", image) {
		t.Skip("no mkfs.ext4 to make an image with")
	}
	if err := mountAll(t, root, &wire.Mount{Type: "ext4", Source: image, Options: []string{"loop", "ro"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(root + "/lost+found"); err != nil {
		t.Error(err)
	}
	if err := Unmount(root); err != nil {
		t.Fatal(err)
	}
}

func TestCommonParent(t *testing.T) {
	for _, tc := range []struct {
		paths []string
		want  string
	}{
		{[]string{"/a/b/c"}, "/a/b"},
		{[]string{"/a/b/1/fs", "/a/b/2/fs"}, "/a/b"},
		{[]string{"/a/b", "/a/bc"}, "/a"},
		{[]string{"/a", "/b"}, "/"},
		{nil, "/"},
	} {
		if got := commonParent(tc.paths); got != tc.want {
			t.Errorf("%v: %s, want %s", tc.paths, got, tc.want)
		}
	}
}
