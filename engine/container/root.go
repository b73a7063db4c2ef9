package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/atomicfile"
)

// rootMark is a file in a root directory that was made, or found empty, by this runtime: all
// directories in it are its own, those without a record too. A root without it (--root ~) may
// hold anything, and there a directory is a container's by its record alone. No id has a colon.
const rootMark = "berth:root"

// openRoot opens the root directory, and refuses one that others may write to: who can put
// files there decides what root's commands do, down to the hooks of a delete. Nor is a
// link followed: one in /tmp may be any user's, and lead anywhere.
func (r *Runtime) openRoot() (int, error) {
	fd, err := unix.Open(r.Root, unix.O_DIRECTORY|unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		var st unix.Stat_t
		if err == unix.ENOTDIR && unix.Lstat(r.Root, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
			return -1, fmt.Errorf("state root %s: it is a symbolic link; pass the directory itself to --root", r.Root)
		}
		if err == unix.ENOTDIR && unix.Lstat(r.Root, &st) == nil {
			return -1, fmt.Errorf("state root %s: not a directory", r.Root)
		}
		return -1, fmt.Errorf("state root: %w", &os.PathError{Op: "open", Path: r.Root, Err: err})
	}
	if err := notOthers(fd); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("state root %s: %w; chown it to yourself and chmod it to 0700, or choose another with --root", r.Root, err)
	}
	return fd, nil
}

// notOthers refuses a directory that others than root and the caller may write to.
func notOthers(dir int) error {
	var st unix.Stat_t
	if err := unix.Fstat(dir, &st); err != nil {
		return err
	}
	if st.Mode&0o022 != 0 || st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("others may write to it (owner %d, mode %o)", st.Uid, st.Mode&0o7777)
	}
	return nil
}

// lockRoot takes the lock of the root directory, which goes with the descriptor that
// is returned.
func (r *Runtime) lockRoot(how int) (int, error) {
	fd, err := r.openRoot()
	if err != nil {
		return -1, err
	}
	if err := flock(fd, how, lockLimit); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("lock the state root %s: %w", r.Root, err)
	}
	return fd, nil
}

// makeRoot makes the root directory where it is missing, and marks one that is empty.
func (r *Runtime) makeRoot() error {
	root, err := r.openRoot()
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(r.Root, 0o700); err != nil {
			return fmt.Errorf("create the state root: %w", err)
		}
		root, err = r.openRoot()
	}
	if err != nil {
		return err
	}
	defer unix.Close(root)
	if !marked(root) && len(entries(root)) == 0 {
		// Without a mark there is less to collect, and no harm done.
		if fd, err := unix.Openat(root, rootMark, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o600); err == nil {
			unix.Close(fd)
		}
	}
	return nil
}

// marked reports whether all that is in a root directory is this runtime's.
func marked(root int) bool {
	var st unix.Stat_t
	return unix.Fstatat(root, rootMark, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}

// entries lists a directory; one that can't be read seems to hold something.
func entries(dir int) []string {
	fd, err := unix.Openat(dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return []string{"?"}
	}
	defer unix.Close(fd)
	var names []string
	buf := make([]byte, 4096)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return []string{"?"}
		}
		if n == 0 {
			return names
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// folderFiles are all that there is in a container's directory, the record last: while it is
// there, the others are known to be ours.
var folderFiles = []string{gateFile, poststartFile, standstillFile, endFile, deniedFile, notifyMaking, atomicfile.Temporary(recordFile), atomicfile.Temporary(configFile), configFile, recordFile}

// foreign names what is in the directory and was not put there by us.
func (c *Container) foreign() []string {
	return slices.DeleteFunc(entries(c.dir), func(name string) bool { return name == notifyDir || slices.Contains(folderFiles, name) })
}

// removeFolder removes the container's directory; the id is free from then on. A command that stays
// with the container takes no lock to write what was refused: of that there may be more when the
// directory is to go.
func (c *Container) removeFolder() {
	var err error
	for range 10 {
		c.emptyFolder()
		if err = unix.Rmdir(filepath.Join(c.runtime.Root, c.ID)); err != unix.ENOTEMPTY {
			break
		}
	}
	if err != nil && err != unix.ENOENT {
		c.runtime.warn("container %s: remove its state directory: %v", c.ID, err)
	}
}

func (c *Container) emptyFolder() {
	for _, name := range entries(c.dir) {
		if name == notifyDir {
			// A process that is allowed to mount may have put something into it. Links in it are
			// not followed.
			_ = os.RemoveAll("/proc/self/fd/" + strconv.Itoa(c.dir) + "/" + notifyDir)
		} else if name != recordFile && slices.Contains(folderFiles, name) {
			_ = unix.Unlinkat(c.dir, name, 0)
		}
	}
	_ = unix.Unlinkat(c.dir, recordFile, 0)
}
