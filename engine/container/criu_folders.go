package container

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/berth-runtime/berth/engine/criu"
	"github.com/berth-runtime/berth/engine/rootfs"
	"golang.org/x/sys/unix"
)

// criuFolders are the directories of a checkpoint.
type criuFolders struct {
	images *os.File
	log    string // the path of criu's log
}

func (o *CriuOptions) open(log string, create bool) (*criuFolders, error) {
	if o.Images == "" {
		return nil, errors.New("--image-path: it is empty")
	}
	if create {
		if err := os.MkdirAll(o.Images, 0o700); err != nil {
			return nil, fmt.Errorf("--image-path: %w", err)
		}
	}
	images, err := os.OpenFile(o.Images, os.O_RDONLY|unix.O_DIRECTORY, 0) // so that a FIFO is no directory, and not waited at
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("--image-path: %w (berth checkpoint creates the directory; pass another one if this is not it)", err)
	}
	if errors.Is(err, unix.ENOTDIR) && !create {
		return nil, fmt.Errorf("--image-path: %w (%s)", err, podmanExport)
	}
	if err != nil {
		return nil, fmt.Errorf("--image-path: %w", err)
	}
	f := &criuFolders{images: images, log: filepath.Join(o.Images, log)}
	if o.Work != "" {
		if err := os.MkdirAll(o.Work, 0o700); err != nil {
			f.close()
			return nil, fmt.Errorf("--work-path: %w", err)
		}
		f.log = filepath.Join(o.Work, log)
	}
	return f, nil
}

// podmanExport says what to do with what podman container checkpoint --export has written.
const podmanExport = "podman container restore --import takes an export of Podman's; the images in it are its directory checkpoint"

// complete refuses a directory without a checkpoint in it, of which criu says only that it can't
// open an image.
func (f *criuFolders) complete() error {
	const inventory = "inventory.img" // the first that criu opens
	dir := f.images.Name()
	if _, err := os.Lstat(filepath.Join(dir, inventory)); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(dir, "checkpoint", inventory)); err == nil {
		return fmt.Errorf("--image-path: no checkpoint in %s, but in %s/checkpoint (%s)", dir, dir, podmanExport)
	}
	return fmt.Errorf("--image-path: no checkpoint in %s: it has no %s", dir, inventory)
}

func (f *criuFolders) close() { f.images.Close() }

// clear removes an old log. criu would begin it anew too, but of whatever has its name by then: it
// follows a link, and waits at a FIFO.
func (f *criuFolders) clear() { _ = unix.Unlink(f.log) }

// openable refuses images that hold criu up: it opens them by name, and waits at a FIFO for ever,
// and 45 s for each file that a lease is on (fcntl(2)).
func (f *criuFolders) openable() error { return f.openableIn(f.images.Name(), mostParents) }

const (
	// parentImages is criu's link to the images that these only tell the changes of.
	parentImages = "parent"
	mostParents  = 64
)

func (f *criuFolders) openableIn(dir string, parents int) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("--image-path: %w", err)
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		info, err := os.Stat(name)
		switch {
		case err != nil, info.Mode()&fs.ModeSocket != 0: // to open a socket fails at once
			continue
		case name == f.log: // it is removed before criu begins
			continue
		case info.IsDir():
			if e.Name() == parentImages && parents > 0 {
				if err := f.openableIn(name, parents-1); err != nil {
					return err
				}
			}
			continue
		}
		file, err := rootfs.OpenFile(name)
		if errors.Is(err, rootfs.ErrNotRegular) || errors.Is(err, rootfs.ErrLeased) {
			return fmt.Errorf("--image-path: %w, and criu would wait for it", err)
		}
		if err == nil {
			file.Close()
		}
	}
	return nil
}

// explain adds to criu's answer what its log says of the reason.
func (f *criuFolders) explain(id string, err error) error {
	text, said := "", ""
	if log, err := rootfs.OpenFile(f.log); err == nil {
		data, _ := log.Tail(256 << 10) // what could be read is better than nothing
		said = criu.LogErrors(data)
		log.Close()
	}
	if said != "" {
		text = ": " + said
		// The log has all that the answer has, and what led to it.
		var refused *criu.Refusal
		if errors.As(err, &refused) {
			err = &criu.Refusal{Task: refused.Task, Errno: refused.Errno}
		}
	}
	if hint := criu.Hint(said + err.Error()); hint != "" {
		text += " (" + hint + ")"
	}
	if _, missing := os.Stat(f.log); missing == nil {
		text += "; the whole log is " + f.log
	}
	return fmt.Errorf("container %s: %w%s", id, err, text)
}
