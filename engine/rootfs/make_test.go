package rootfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/engine/rootfs"
	"golang.org/x/sys/unix"
)

func TestMake(t *testing.T) {
	outside := t.TempDir()
	dir := t.TempDir()
	links := map[string]string{
		"absolute": "/made/by/link", "relative": "near/file", "out": "../../../../../../escape", "straight": outside + "/x", "round": "round",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := rootfs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	uid, gid := uint32(os.Getuid()), uint32(os.Getgid())
	if uid == 0 {
		uid, gid = 100000, 100001
	}
	for _, test := range []struct {
		name string
		dir  bool
		made string
		mode os.FileMode
	}{
		{"/a/b/c", true, "a/b/c", os.ModeDir | 0o755},
		{"/a/b/file", false, "a/b/file", 0o644},
		{"absolute", false, "made/by/link", 0o644},
		{"relative", false, "near/file", 0o644},
		{"out", true, "escape", os.ModeDir | 0o755},
		{"straight", false, outside + "/x", 0o644},
		{"file", false, "file", 0o600},
	} {
		if err := root.Make(test.name, test.dir, uid, gid); err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if info, err := os.Lstat(filepath.Join(dir, test.made)); err != nil || info.Mode() != test.mode {
			t.Errorf("%s: %v, %v", test.name, info, err)
		} else if st := info.Sys().(*syscall.Stat_t); test.name != "file" && (st.Uid != uid || st.Gid != gid) {
			t.Errorf("%s belongs to %d:%d", test.name, st.Uid, st.Gid)
		}
	}
	if err := root.Make("round", false, uid, gid); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a link to itself: %v", err)
	}
	if err := root.Make("file/below", false, uid, gid); !errors.Is(err, unix.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
		t.Errorf("outside of the root: %v, %v", left, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(text) != "kept" {
		t.Errorf("a file that was there: %q, %v", text, err)
	}
}
