package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/layer"
	"github.com/berth-runtime/berth/cmd/berth/internal/box/tarfile"
)

// Use finds an image, and unpacks it if that was not done before. name is FILE or DIR, or one of
// these with :NAME where there are several images.
func (c *Cache) Use(name string) (root string, config *Config, err error) {
	file, ref := split(name)
	info, err := os.Stat(file)
	if err != nil {
		return "", nil, err
	}
	if info.IsDir() {
		return c.useDirectory(file, ref)
	}
	if !info.Mode().IsRegular() {
		return "", nil, errors.New("it is neither a regular file nor a directory")
	}
	f, err := os.Open(file)
	if err != nil {
		return "", nil, err
	}
	defer f.Close()
	return c.useFile(f, ref)
}

// split separates the name of an image from that of its archive, which may have colons too.
func split(name string) (file, ref string) {
	for i := len(name); i > 0; i = strings.LastIndexByte(name[:i], ':') {
		if _, err := os.Stat(name[:i]); err == nil {
			return name[:i], strings.TrimPrefix(name[i:], ":")
		}
	}
	return name, ""
}

func (c *Cache) useDirectory(dir, ref string) (string, *Config, error) {
	if _, err := os.Stat(filepath.Join(dir, "index.json")); err != nil {
		return "", nil, errors.New("there is no index.json in it, as an OCI layout has (for a directory with a root file system: --rootfs)")
	}
	f, err := ofLayout(directory(dir), ref)
	if err != nil {
		return "", nil, err
	}
	key, err := c.make(f)
	return c.root(key), f.config, err
}

func (c *Cache) useFile(f *os.File, ref string) (string, *Config, error) {
	name, err := memoName(f, ref)
	if err != nil {
		return "", nil, err
	}
	m := c.recall(f, name)
	if m == nil {
		lock, err := c.lock(name)
		if err != nil {
			return "", nil, err
		}
		defer lock.Close()
		if m = c.recall(f, name); m == nil { // which another process has not made meanwhile
			if m, err = c.read(f, name, ref); err != nil {
				return "", nil, err
			}
		}
	}
	if m.text == "" {
		return c.root(m.key), &Config{}, nil
	}
	config, err := readConfig([]byte(m.text))
	return c.root(m.key), config, err
}

// read reads an archive and unpacks it, by who has the lock of the name.
func (c *Cache) read(f *os.File, name, ref string) (*memo, error) {
	m := &memo{}
	var settled bool
	var err error
	if m.was, settled, err = stateOf(f); err != nil {
		return nil, err
	}
	in, plain, err := c.plain(f)
	if err != nil {
		return nil, err
	}
	if in != f {
		defer in.Close()
	}
	var image *found
	if !plain {
		if image, err = ofArchive(in, ref); err != nil {
			return nil, err
		}
	}
	if image == nil {
		if ref != "" {
			return nil, fmt.Errorf("it is a root file system, and has no image %s", ref)
		}
		m.key, err = c.makePlain(f, name)
	} else {
		m.text = string(image.text)
		m.key, err = c.make(image)
	}
	if err == nil && settled {
		err = c.note(name, m)
	}
	return m, err
}

// plain reports whether an archive is known to be a root file system, or the file where that can
// be found out: for a compressed one of an image another file, without a name.
func (c *Cache) plain(f *os.File) (*os.File, bool, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, false, err
	}
	m := &meter{in: f, total: info.Size(), tell: c.Progress}
	contents, err := expand(m)
	if err != nil || contents.cmd == nil {
		return f, false, err
	}
	start, err := contents.Peek(1 << 12)
	if err == nil && !ofImage(start) {
		return f, true, contents.Close()
	}
	if err != nil && err != io.EOF {
		return nil, false, errors.Join(err, contents.Close())
	}
	out, err := os.CreateTemp(filepath.Join(c.dir, "new"), ".expanded-")
	if err != nil {
		return nil, false, err
	}
	// Without a name it goes with this process. Another may have taken it for a killed one's.
	if err = os.Remove(out.Name()); err == nil || errors.Is(err, fs.ErrNotExist) {
		_, err = io.Copy(out, contents)
	}
	if failed := contents.Close(); failed != nil {
		err = failed
	}
	if err != nil {
		out.Close()
		return nil, false, err
	}
	return out, false, nil
}

// ofImage reports whether an archive of which this is the start may be one of an image, by the
// names that such archives have.
func ofImage(start []byte) bool {
	r := tarfile.NewReader(strings.NewReader(string(start)))
	for {
		h, err := r.Next()
		if err != nil {
			return false
		}
		switch name := inside(h.Name); name {
		case "":
		case "oci-layout", "index.json", "manifest.json", "repositories", "version", "blobs":
			return true
		default:
			first, _, _ := strings.Cut(name, "/")
			return first == "blobs" || isHash(strings.TrimSuffix(first, path.Ext(first)))
		}
	}
}

// ofArchive finds the image of an archive; nil for none: it is a root file system.
func ofArchive(f *os.File, ref string) (*found, error) {
	a, few, err := scan(f)
	switch {
	case err != nil:
		return nil, err
	case few && a.has("manifest.json"):
		return ofSaved(a, ref)
	case few && a.has("index.json") && a.has("oci-layout"):
		return ofLayout(a, ref)
	}
	return nil, nil
}

// make unpacks an image, unless it is there.
func (c *Cache) make(f *found) (key string, err error) {
	key = c.key(f.config.diffs...)
	if c.has(key) {
		return key, nil
	}
	if err := f.measure(); err != nil {
		return "", err
	}
	lock, err := c.lock(key)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if c.has(key) {
		return key, nil
	}
	// Directories that are not in a layer are to be found by all users of the image.
	defer unix.Umask(unix.Umask(0o022))
	dir, err := c.fresh(key)
	if err == nil {
		err = c.unpack(f, dir)
	}
	if err == nil {
		return key, c.keep(dir, key)
	}
	return "", errors.Join(err, discard(dir))
}

// makePlain unpacks an archive of a root file system.
func (c *Cache) makePlain(f *os.File, name string) (key string, err error) {
	info, err := f.Stat()
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return "", err
	}
	defer unix.Umask(unix.Umask(0o022))
	dir, err := c.fresh(name)
	if err != nil {
		return "", err
	}
	tree, err := layer.Open(dir)
	if err == nil {
		defer tree.Close()
		tree.Owners, tree.Most = c.Owners, mostEntries
		var diff string
		_, diff, err = apply(tree, &meter{in: f, total: info.Size(), tell: c.Progress})
		key = c.key(diff)
	}
	if err == nil {
		err = tree.Finish()
	}
	if err == nil {
		return key, c.keep(dir, key)
	}
	return "", errors.Join(err, discard(dir))
}
