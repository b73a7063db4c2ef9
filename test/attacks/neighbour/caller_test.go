package neighbour

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/berth-runtime/berth/test/harness"
)

// callers are users who call the engine for containers of their own: nobody on the host, nor an id
// of any container's. Who acts as another user of the host has another number.
const callers = 1_000_000

// call prepares a call of the engine by whom the shape says.
func (t *trial) call(verb string, flags []string, words ...string) *harness.Command {
	cmd := t.s.target.Command(verb, flags, words...)
	if verb == "gc" {
		cmd = t.s.b.Command("gc")
	}
	if t.shape.rootless {
		cmd.Bare, cmd.Args = true, append([]string{"--root", t.root()}, cmd.Args...)
		cmd.Wrap = []string{harness.Helper(t.s.b.T), "as", strconv.Itoa(t.s.caller())}
	}
	return cmd
}

func (s *scene) caller() int { return callers + s.userID }

// root is the engine's state root.
func (t *trial) root() string {
	if t.shape.rootless {
		return filepath.Join(t.own(), "state")
	}
	return t.s.b.Root
}

// own is a directory that the caller may write to.
func (t *trial) own() string {
	if t.shape.rootless {
		return t.s.b.Path("caller")
	}
	return t.s.b.Dir
}

// handOver gives the caller what is theirs: the root file system as an image unpacked by them, and
// a directory for their state. The programs in the root are links to what others use too.
func (t *trial) handOver() {
	test, id := t.s.b.T, t.s.caller()
	test.Helper()
	if err := os.Mkdir(t.own(), 0o755); err != nil && !os.IsExist(err) {
		test.Fatal(err)
	}
	check(test, os.Chown(t.own(), id, id))
	for _, dir := range []string{t.s.target.Rootfs(), t.s.b.Path("volume")} {
		check(test, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := e.Info()
			if err != nil || info.Mode().IsRegular() && info.Sys().(*syscall.Stat_t).Nlink > 1 {
				return err
			}
			return os.Lchown(path, id, id)
		}))
	}
}
