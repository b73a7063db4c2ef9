package integration

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// boxChanges is what --diff=json writes.
type boxChanges struct {
	Changes []struct {
		Kind, Path, Type, Mode, Target string
		UID, GID                       int
		Size                           int64
		Was                            *struct{ Type, Mode string }
	}
	Added, Modified, Deleted int
}

func (c *boxChanges) lines() (list []string) {
	for _, e := range c.Changes {
		line := e.Kind + " " + e.Path + " " + e.Type + " " + e.Mode
		if e.Was != nil {
			line += " was " + e.Was.Type + " " + e.Was.Mode
		}
		list = append(list, line)
	}
	return list
}

// changedRoot is a root file system with something to change.
func changedRoot(b *harness.Box) string {
	root := b.Container().Rootfs()
	for name, text := range map[string]string{"data/kept": "kept", "data/gone": "gone", "data/same": "same", "old/a": "a", "again/before": "before", "data/mode": "mode"} {
		if err := os.MkdirAll(root+"/"+strings.Split(name, "/")[0], 0o755); err != nil {
			b.T.Fatal(err)
		}
		if err := os.WriteFile(root+"/"+name, []byte(text), 0o644); err != nil {
			b.T.Fatal(err)
		}
	}
	return root
}

const changing = `cd /data; echo more >> kept; rm gone; printf same > same; touch kept same; chmod 0 mode
	rm -r /old /again; mkdir /again; echo x > /again/after; mkdir -p /new/dir; echo 12345 > /new/dir/file
	ln /new/dir/file /new/second; ln -s file /new/dir/link; mkfifo /new/fifo; chmod 4755 /new/second`

var changed = []string{
	"A /again/after file 0644", "D /again/before file 0644", "D /data/gone file 0644", "M /data/kept file 0644 was file 0644",
	"M /data/mode file 0000 was file 0644", "A /new directory 0755", "A /new/dir directory 0755", "A /new/dir/file file 4755",
	"A /new/dir/link link 0777", "A /new/fifo fifo 0644", "A /new/second file 4755", "D /old directory 0755",
}

func checkChanges(t *testing.T, b *harness.Box, root string, args ...string) {
	t.Helper()
	file := b.Path("diff.json")
	box(b, append([]string{"--rootfs", root, "--diff=json:" + file, "--ro", b.Dir + ":/mounted/here"}, args...)...).Run().OK(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c boxChanges
	harness.Decode(t, string(text), &c)
	if got := c.lines(); !slices.Equal(got, changed) {
		t.Errorf("it tells\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(changed, "\n"))
	}
}

// What a box has changed is told, kept, started from again, and brought to another root, by root
// and by an ordinary user.
func TestBoxChanges(t *testing.T) {
	for _, who := range []string{"root", "ordinary user"} {
		t.Run(who, func(t *testing.T) {
			b := harness.New(t)
			root := changedRoot(b)
			if who != "root" {
				u := b.AsOrdinaryUser(t, 0)
				chownTree(t, root, u.UID)
			}
			saved := b.Path("saved.tar")
			checkChanges(t, b, root, "--save", saved, "--", "/bin/sh", "-c", changing)
			if _, err := os.Lstat(root + "/new"); err == nil {
				t.Fatal("the root was written to")
			}
			// A box that starts from it shows the same, with nothing done.
			checkChanges(t, b, root, "--on", saved, "--", "/bin/sh", "-c",
				"cat /data/kept /new/dir/link; test ! -e /old && test ! -e /again/before && test -p /new/fifo && test /new/second -ef /new/dir/file")
			dir := b.Path("saved")
			box(b, "--rootfs", root, "--on", saved, "--save", dir+"/", "--", "/bin/true").Run().OK(t)
			if text, err := os.ReadFile(dir + "/new/dir/file"); string(text) != "12345\n" {
				t.Errorf("%q, %v", text, err)
			}
			if _, err := os.Lstat(dir + "/data/.wh.gone"); err != nil {
				t.Error(err)
			}
			if r := box(b, "--rootfs", root, "--apply", saved).Run().Exits(t, 125); !strings.Contains(r.Stderr, "pass --yes") {
				t.Errorf("%q", r.Stderr)
			}
			box(b, "--rootfs", root, "--apply", saved, "--yes").Run().OK(t)
			for name, want := range map[string]string{"data/kept": "keptmore\n", "again/after": "x\n", "new/second": "12345\n", "data/same": "same"} {
				if text, err := os.ReadFile(root + "/" + name); string(text) != want {
					t.Errorf("%s: %q, %v", name, text, err)
				}
			}
			for _, gone := range []string{"data/gone", "old", "again/before"} {
				if _, err := os.Lstat(root + "/" + gone); err == nil {
					t.Errorf("%s is still there", gone)
				}
			}
			if info, err := os.Stat(root + "/new/second"); err != nil || info.Mode() != os.ModeSetuid|0o755 {
				t.Errorf("%v, %v", info, err)
			}
			// By now there is nothing left of it to do.
			if r := box(b, "--rootfs", root, "--apply", saved).Run(); r.Code == 0 && r.Stdout != "no changes\n" {
				t.Errorf("%q", r.Stdout)
			}
		})
	}
}

// Nothing that a file holds is shown.
func TestBoxDiffShowsNoContents(t *testing.T) {
	b := harness.NewForAnyone(t)
	for _, form := range []string{"--diff", "--diff=tree"} {
		r := box(b, form, "--", "/bin/sh", "-c", "mkdir -p ~/.ssh; echo the-secret > ~/.ssh/berth-test-key")
		r.Env = []string{"HOME=/usr/share"}
		said := r.Run().OK(t).Stderr
		if !strings.Contains(said, "berth-test-key") || strings.Contains(said, "the-secret") || !strings.Contains(said, "2 added") && os.Geteuid() == 0 {
			t.Errorf("%q", said)
		}
	}
	if r := box(b, "--diff", "--", "/bin/true").Run().OK(t); r.Stderr != "no changes\n" {
		t.Errorf("%q", r.Stderr)
	}
}

func chownTree(t *testing.T, root string, uid int) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(name, &st)
		}
		if err != nil || st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink > 1 { // the programs are other tests' as well
			return err
		}
		return os.Lchown(name, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}
