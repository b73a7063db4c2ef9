package attacks

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/berth-runtime/berth/internal/atomicfile"
	"github.com/berth-runtime/berth/test/harness"
)

// Other users of the host can neither read nor change what is kept of a container, however loose
// the caller's umask is.
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

		harness.RootMark: 0o600,
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

// Who may write to the root directory could plant a container there, with hooks that the next
// delete runs as root.
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

// A link among the containers' directories is not a container.
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

// Where a pid file goes to, others may put files too: in a /tmp, with links by the names that the
// runtime is known to use.
func TestPidFileIsALink(t *testing.T) {
	b := harness.New(t)
	o := newOutside(b, map[string]string{"file": "the host's"})
	pidFile := b.Path("pid")
	for _, name := range []string{pidFile, atomicfile.Temporary(pidFile)} {
		c := b.Container("/bin/true")
		_ = os.Remove(pidFile) // the first one's
		check(t, os.Symlink(filepath.Join(o.dir, "file"), name))
		c.Run("--pid-file", pidFile).OK(t)
		if info, err := os.Lstat(pidFile); err != nil || !info.Mode().IsRegular() {
			t.Errorf("the pid file is %v, %v", info, err)
		}
		o.untouched()
		harness.Report(t, "attacks", 1)
	}
}

// A directory that is no state root, or not of this runtime alone, holds what is not ours: names
// like those of our files say nothing.
func TestForeignFilesInTheRoot(t *testing.T) {
	b := harness.New(t)
	home := b.Path("home")
	makeTree(t, home, map[string]string{
		"project/config.json": "{}", "project/state.json": `{"id":"project"}`, "project/main.c": "int main;", "app/config.json": "{}", "app/start": "#!",
		"runc/state.json": `{"id":"runc","init_process_pid":1,"created":"2026-01-02T03:04:05Z","config":{}}`,
	}, []string{"empty"})
	check(t, filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	}))
	o := &outside{b: b, dir: home, kept: fingerprint(t, home)}
	root := func(args ...string) harness.Result {
		return b.Command(append([]string{"--root", home}, args...)...).Run()
	}
	root("gc").OK(t)
	o.untouched()
	ids := []string{"project", "app", "runc", "empty"}
	for _, id := range ids {
		root("delete", "--force", id).Fails(t, id, "stays")
		root("delete", id).Fails(t, id)
		root("kill", id, "KILL").Fails(t, id)
		o.untouched()
	}
	// A container may be made there all the same; what is left of it is known by its record.
	before := foreign(t, home, ids...)
	c := b.Container("/bin/true")
	c.Write()
	root("run", "--bundle", c.Dir, c.ID).OK(t)
	root("gc").OK(t)
	if after := foreign(t, home, ids...); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
	harness.Report(t, "attacks", 3+3*len(ids))
}

// foreign describes directories below one that may change itself.
func foreign(t *testing.T, top string, names ...string) (all string) {
	t.Helper()
	for _, name := range names {
		all += fingerprint(t, filepath.Join(top, name))
	}
	return all
}

// Another user may have put a link where the root is to be: in /tmp, where an ordinary user's is
// by default.
func TestRootFolderIsALink(t *testing.T) {
	b := harness.New(t)
	c := b.Container("/inside", "hang").RunDetached()
	makeTree(t, b.Path("home/app"), map[string]string{"config.json": "{}", "start": "#!"}, nil)
	check(t, os.Chmod(b.Path("home"), 0o700))
	o := &outside{b: b, dir: b.Path("home"), kept: fingerprint(t, b.Path("home"))}
	for name, to := range map[string]string{"to-home": b.Path("home"), "to-root": b.Root} {
		link := b.Path(name)
		check(t, os.Symlink(to, link))
		for _, args := range [][]string{{"gc"}, {"list"}, {"state", c.ID}, {"delete", "--force", "app"}, {"delete", "--force", c.ID}, {"create", "--bundle", c.Dir, "another"}} {
			b.Command(append([]string{"--root", link}, args...)...).Run().Fails(t, link, "symbolic link")
		}
	}
	o.untouched()
	if s := c.State(); s.Status != "running" {
		t.Errorf("the container is %s", s.Status)
	}
	harness.Report(t, "attacks", 12)
}

// A record that is empty, cut off or another's: delete --force ends no container by forgetting it.
func TestDamagedRecordOfARunningContainer(t *testing.T) {
	harness.Hierarchies(t)
	for name, test := range map[string]struct {
		record, config string
		path           bool
	}{
		"empty":                     {"", "-", true},
		"half":                      {`{"runtime":"berth","id":"`, "-", true},
		"empty, as its config is":   {"", "", false},
		"empty, in the usual place": {"", "-", false},
		"another's":                 {`{"id":"x"}`, "-", true},
	} {
		t.Run(strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(name), func(t *testing.T) {
			b := harness.New(t)
			c := b.Container("/inside", "hang")
			c.Spec.Linux.CgroupsPath = ""
			if test.path {
				c.Spec.Linux.CgroupsPath = "/" + b.Tag + "/somewhere"
			}
			c.RunDetached()
			folder := filepath.Join(b.Root, c.ID)
			kept := map[string][]byte{}
			for file, text := range map[string]string{"state.json": test.record, "config.json": test.config} {
				data, err := os.ReadFile(filepath.Join(folder, file))
				check(t, err)
				kept[file] = data
				if text != "-" {
					check(t, os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
				}
			}
			r := c.Command("delete", []string{"--force"}).Run()
			r.Fails(t, c.ID, "state.json")
			if name != "another's" && !strings.Contains(r.Stderr, strconv.Itoa(c.PID)) {
				t.Errorf("process %d is not named: %s", c.PID, r.Stderr)
			}
			if err := syscall.Kill(c.PID, 0); err != nil {
				t.Errorf("the process: %v", err)
			}
			for file, data := range kept {
				check(t, os.WriteFile(filepath.Join(folder, file), data, 0o600))
			}
			if s := c.State(); s.Status != "running" {
				t.Errorf("with its record again, it is %s", s.Status)
			}
			c.Delete("--force")
			c.WaitExit()
			harness.Report(t, "attacks", 1)
		})
	}
}
