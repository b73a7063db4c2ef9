package atomicfile

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Write replaces a file, or makes it with the given mode. The path is relative to the directory
// that dir is open on, as openat(2) has it.
func Write(dir int, path string, data []byte, mode uint32) error {
	return write(dir, path, data, mode, func(int) error { return nil })
}

// WriteSynced is Write, and returns when the disk has the file under its name.
func WriteSynced(dir int, path string, data []byte, mode uint32) error {
	if err := write(dir, path, data, mode, unix.Fsync); err != nil {
		return err
	}
	parent, err := unix.Openat(dir, filepath.Dir(path), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Fsync(parent), unix.Close(parent))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Temporary is the name of a file until it is whole.
func Temporary(path string) string {
	dir, name := filepath.Split(path)
	return dir + "." + name + ".new"
}

func write(dir int, path string, data []byte, mode uint32, sync func(fd int) error) error {
	temporary := Temporary(path)
	fd, err := create(dir, temporary, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	err = writeAll(fd, data)
	if err == nil {
		err = sync(fd)
	}
	if err2 := unix.Close(fd); err == nil {
		err = err2
	}
	if err == nil {
		err = putInPlace(dir, temporary, path)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temporary, 0)
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// create makes the temporary file. In a directory such as /tmp, others may have put a link or a
// file of theirs there.
func create(dir int, temporary string, mode uint32) (int, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, temporary, flags, mode)
	if err == unix.EEXIST && unix.Unlinkat(dir, temporary, 0) == nil {
		fd, err = unix.Openat(dir, temporary, flags, mode)
	}
	return fd, err
}

// putInPlace gives a file another's name. ext4 and others write a file to the disk that
// is renamed over another one, lest a crash of the machine leave an empty one, and
// who removes it soon after waits for that. What is exchanged for another is not written.
func putInPlace(dir int, temporary, path string) error {
	switch err := unix.Renameat2(dir, temporary, dir, path, unix.RENAME_EXCHANGE); err {
	case nil:
		err := unix.Unlinkat(dir, temporary, 0) // the old one
		if err != nil {                         // which is a directory
			_ = unix.Renameat2(dir, temporary, dir, path, unix.RENAME_EXCHANGE)
		}
		return err
	case unix.ENOENT, unix.EINVAL: // there is no old one, or the file system can't
		return unix.Renameat(dir, temporary, dir, path)
	default:
		return err
	}
}

func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}
