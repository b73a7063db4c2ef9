package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// A Cache is a directory of unpacked images:
//
//	roots/KEY    a root file system; KEY is the digest of what it was made of
//	new/NAME     one that is being made, by who has the lock of this name
//	locks/NAME
//	files/NAME   what an archive was found to have, for as long as it is unchanged
type Cache struct {
	dir string
	// Owners keeps the owners that archives name, which takes root's rights.
	Owners bool
	// Progress is told how much of an archive has been read, now and then. An error ends it.
	Progress func(done, total int64) error
	// Wait waits until another process has unpacked what we want, or is to end.
	Wait func(over <-chan struct{}) error
}

// OpenCache opens a cache, or makes it.
func OpenCache(dir string) (*Cache, error) {
	for _, d := range []string{dir, dir + "/roots", dir + "/new", dir + "/locks", dir + "/files"} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, err
		}
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return nil, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	if int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("%s belongs to the user %d: programs from there would be that user's", dir, st.Uid)
	}
	// What is setuid in an image would be the caller's, to all who get there.
	if st.Mode&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return &Cache{
		dir: dir, Progress: func(int64, int64) error { return nil },
		Wait: func(over <-chan struct{}) error { <-over; return nil },
	}, nil
}

func (c *Cache) root(key string) string { return filepath.Join(c.dir, "roots", key) }

// has reports whether a root is there; it is whole then.
func (c *Cache) has(key string) bool {
	info, err := os.Lstat(c.root(key))
	return err == nil && info.IsDir()
}

// lock keeps other processes away from what has this name, until it is closed.
func (c *Cache) lock(name string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(c.dir, "locks", name), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err = flock(f, unix.LOCK_EX|unix.LOCK_NB); err != unix.EWOULDBLOCK {
		return f, closeOn(f, err)
	}
	over := make(chan struct{})
	go func() { // it goes on if we are to end, and then the process does
		err = flock(f, unix.LOCK_EX)
		close(over)
	}()
	if err := c.Wait(over); err != nil {
		return nil, err
	}
	<-over
	return f, closeOn(f, err)
}

func closeOn(f *os.File, err error) error {
	if err != nil {
		f.Close()
	}
	return os.NewSyscallError("flock", err)
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); err != unix.EINTR {
			return err
		}
	}
}

// fresh makes the directory that a root is unpacked to, by who has the lock. What others have left
// that were killed is removed.
func (c *Cache) fresh(name string) (string, error) {
	entries, err := os.ReadDir(filepath.Join(c.dir, "new"))
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if e.Name() == name {
			err = errors.Join(err, discard(filepath.Join(c.dir, "new", name)))
			continue
		}
		f, gone := os.OpenFile(filepath.Join(c.dir, "locks", e.Name()), os.O_RDWR|os.O_CREATE, 0o600)
		if gone != nil {
			continue
		}
		if flock(f, unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = discard(filepath.Join(c.dir, "new", e.Name()))
		}
		f.Close()
	}
	dir := filepath.Join(c.dir, "new", name)
	return dir, errors.Join(err, os.Mkdir(dir, 0o755))
}

// keep gives a root its name, once the disk has it: after a power cut it is there whole or not at
// all.
func (c *Cache) keep(dir, key string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	err = unix.Syncfs(fd)
	unix.Close(fd)
	if err != nil {
		return os.NewSyscallError("syncfs", err)
	}
	err = os.Rename(dir, c.root(key))
	if errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTEMPTY) {
		return discard(dir) // another archive has the same
	}
	return err
}

// discard removes a directory, with those in it whose modes refuse that to their owner.
func discard(dir string) error {
	_ = filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = os.Chmod(name, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}
