package attacks

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// outside is a directory of the host's that no container is given. It has all that an attack may be
// after.
type outside struct {
	b    *harness.Box
	dir  string
	kept string // what it looked like
}

// newOutside makes the directory, with the given directories and files (with a content) in it.
func newOutside(b *harness.Box, files map[string]string, dirs ...string) *outside {
	b.T.Helper()
	o := &outside{b: b, dir: b.Path("outside")}
	makeTree(b.T, o.dir, files, dirs)
	o.kept = fingerprint(b.T, o.dir)
	return o
}

func makeTree(t testing.TB, root string, files map[string]string, dirs []string) {
	t.Helper()
	check(t, os.MkdirAll(root, 0o755))
	for _, dir := range dirs {
		check(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for name, content := range files {
		check(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		check(t, os.WriteFile(filepath.Join(root, name), []byte(content), 0o644))
	}
}

// untouched fails the test if anything in the directory is not as it was, or anything is mounted in
// it.
func (o *outside) untouched() {
	t := o.b.T
	t.Helper()
	if now := fingerprint(t, o.dir); now != o.kept {
		t.Errorf("what is outside of the container was changed\nbefore:\n%safter:\n%s", o.kept, now)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	check(t, err)
	if strings.Contains(string(mounts), " "+o.dir) {
		t.Errorf("something is mounted outside of the container:\n%s", mounts)
	}
}

// fingerprint describes everything below a directory: kinds, modes, owners, inodes, times of
// change, links and contents.
func fingerprint(t testing.TB, root string) string {
	t.Helper()
	var b strings.Builder
	check(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		fmt.Fprintf(&b, "%s %s %d:%d inode %d changed %d.%d", strings.TrimPrefix(path, root), info.Mode(), st.Uid, st.Gid, st.Ino, st.Ctim.Sec, st.Ctim.Nsec)
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %q", data)
		case info.Mode()&os.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			b.WriteString(" -> " + target)
		}
		b.WriteByte('\n')
		return nil
	}))
	return b.String()
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// link puts a symbolic link into the container's root, in the place of whatever is there.
func link(c *harness.Container, name, target string) {
	c.Box.T.Helper()
	check(c.Box.T, os.RemoveAll(c.Path(name)))
	check(c.Box.T, os.MkdirAll(filepath.Dir(c.Path(name)), 0o755))
	check(c.Box.T, os.Symlink(target, c.Path(name)))
}

// withoutMount takes the mount on a path out of the config.
func withoutMount(c *harness.Container, destination string) {
	var kept []specs.Mount
	for _, m := range c.Spec.Mounts {
		if m.Destination != destination {
			kept = append(kept, m)
		}
	}
	c.Spec.Mounts = kept
}

func bind(destination, source string, options ...string) specs.Mount {
	return specs.Mount{Destination: destination, Type: "bind", Source: source, Options: append([]string{"bind"}, options...)}
}

// ways are the links by which a root file system may point out of itself to a path of the host.
func ways(target string) map[string]string {
	return map[string]string{
		"absolute": target,
		"upwards":  strings.Repeat("../", 40) + strings.TrimPrefix(target, "/"),
		"magic":    "/proc/1/root" + target,
		"cwd":      "/proc/self/cwd" + strings.Repeat("/..", 40) + target,
	}
}

// remove is for what a container's root user has made in its root.
func unlink(t testing.TB, path string) {
	t.Helper()
	if err := unix.Unlink(path); err != nil && err != unix.ENOENT {
		t.Fatal(err)
	}
}
