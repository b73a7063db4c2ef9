package attacks

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/test/harness"
)

// Other users of the host can neither read nor change what is kept of a container, however loose the caller's umask is.
func TestStateIsItsOwnersAlone(t *testing.T) {
	b := harness.New(t)
	defer syscall.Umask(syscall.Umask(0))
	c := b.Container("/bin/true").Create()
	wanted := map[string]fs.FileMode{
		".":           fs.ModeDir | 0o700,
		c.ID:          fs.ModeDir | 0o700,
		"config.json": 0o600,
		"state.json":  0o600,
		"start":       fs.ModeSocket | 0o600,
	}
	seen := 0
	check(t, filepath.WalkDir(b.Root, func(path string, e fs.DirEntry, err error) error {
		check(t, err)
		info, err := e.Info()
		check(t, err)
		name := e.Name()
		if path == b.Root {
			name = "."
		}
		seen++
		if want, known := wanted[name]; !known || info.Mode() != want {
			t.Errorf("%s has the mode %v, wanted %v", path, info.Mode(), want)
		}
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != os.Geteuid() || int(st.Gid) != os.Getegid() {
			t.Errorf("%s belongs to %d:%d", path, st.Uid, st.Gid)
		}
		return nil
	}))
	if seen != len(wanted) {
		t.Errorf("%d files and folders, wanted %d", seen, len(wanted))
	}
	c.Start().WaitExit()
	harness.Report(t, "attacks", len(wanted))
}

// Who may write to the root folder could plant a container there, with hooks that the next delete runs as root.
func TestRootFolderOfOthers(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	loose := map[string]func(string) error{
		"a group":   func(path string) error { return os.Chmod(path, 0o720) },
		"all":       func(path string) error { return os.Chmod(path, 0o702) },
		"all, /tmp": func(path string) error { return os.Chmod(path, 0o777|fs.ModeSticky) },
		"its owner": func(path string) error { return os.Chown(path, 65534, 65534) },
	}
	for who, loosen := range loose {
		t.Run(who, func(t *testing.T) {
			check(t, loosen(b.Root))
			defer func() {
				check(t, os.Chown(b.Root, os.Geteuid(), os.Getegid()))
				check(t, os.Chmod(b.Root, 0o700))
			}()
			for _, args := range [][]string{{"state", c.ID}, {"kill", c.ID, "KILL"}, {"exec", c.ID, "/bin/true"}, {"delete", "--force", c.ID}, {"gc"},
				{"create", "--bundle", c.Dir, "another"}} {
				code := 1
				if args[0] == "exec" {
					code = 255
				}
				b.Berth(args...).FailsWith(t, code, b.Root, "others may write to it")
			}
			harness.Report(t, "attacks", 6)
		})
	}
	if s := c.State(); s.Status != "running" {
		t.Errorf("the container is %s", s.Status)
	}
}

// A link among the containers' folders is no container.
func TestStateFolderIsALink(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	check(t, os.Symlink(c.ID, filepath.Join(b.Root, "linked")))
	defer os.Remove(filepath.Join(b.Root, "linked"))
	for _, args := range [][]string{{"state", "linked"}, {"kill", "linked", "KILL"}, {"delete", "--force", "linked"}, {"create", "--bundle", c.Dir, "linked"}} {
		if r := b.Berth(args...); r.Code == 0 {
			t.Errorf("%q worked", args)
		}
	}
	if s := c.State(); s.Status != "running" {
		t.Errorf("the container is %s", s.Status)
	}
	harness.Report(t, "attacks", 4)
}

// Where a pid file goes to, others may put files too: in a /tmp, with links by the names that the runtime is known to use.
func TestPidFileIsALink(t *testing.T) {
	b := harness.New(t)
	o := newOutside(b, map[string]string{"file": "the host's"})
	for _, name := range []string{"", ".berth-new"} {
		c := b.Container("/bin/true")
		pidFile := b.Path("pid" + name)
		check(t, os.Symlink(filepath.Join(o.dir, "file"), pidFile+name))
		c.Run("--pid-file", pidFile).OK(t)
		if info, err := os.Lstat(pidFile); err != nil || !info.Mode().IsRegular() {
			t.Errorf("the pid file is %v, %v", info, err)
		}
		o.untouched()
		harness.Report(t, "attacks", 1)
	}
}
