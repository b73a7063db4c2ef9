package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

var applets = sync.OnceValues(func() ([]string, error) {
	path, err := busybox()
	if err != nil {
		return nil, err
	}
	out, err := exec.Command(path, "--list").Output()
	return strings.Fields(string(out)), err
})

// MakeRootfs fills a directory with busybox, its applets as links, the helper as /inside, and the
// files that programs expect.
func MakeRootfs(t testing.TB, root string) {
	t.Helper()
	names, err := applets()
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"bin", "dev", "etc", "home/user", "proc", "root", "sys", "usr/bin", "var"} {
		check(os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	check(os.Mkdir(filepath.Join(root, "tmp"), 0o755))
	check(os.Chmod(filepath.Join(root, "tmp"), 0o1777))
	check(os.Chown(filepath.Join(root, "home/user"), 1000, 1000))
	// Hard links: the programs are only read, and copying two megabytes for each test takes longer
	// than many a test.
	check(os.Link(must(t, busybox), filepath.Join(root, "bin/busybox")))
	check(os.Link(Helper(t), filepath.Join(root, "inside")))
	for _, name := range names {
		if name != "busybox" {
			check(os.Symlink("/bin/busybox", filepath.Join(root, "bin", name)))
		}
	}
	check(os.WriteFile(filepath.Join(root, "etc/passwd"), []byte("root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1001:User:/home/user:/bin/sh\n"), 0o644))
	check(os.WriteFile(filepath.Join(root, "etc/group"), []byte("root:x:0:\nuser:x:1001:\nplayers:x:2000:user\ntty:x:5:\n"), 0o644))
}
