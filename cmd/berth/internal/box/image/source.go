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

	"github.com/berth-runtime/berth/cmd/berth/internal/box/tarfile"
)

// A source has the documents and layers of an image, by names.
type source interface {
	open(name string) (*blob, error)
}

// A blob is one of them. The offset of its file is its own.
type blob struct {
	io.Reader
	io.Closer
	size int64
}

// A directory is a layout that lies in one. Its files may be links to elsewhere, as those have that
// build systems make: what they hold is held against its digest.
type directory string

func (d directory) open(name string) (*blob, error) {
	f, err := os.OpenFile(filepath.Join(string(d), name), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", f.Name())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &blob{Reader: f, Closer: f, size: info.Size()}, nil
}

// An archive is a tar archive of documents and layers.
type archive struct {
	file    *os.File
	entries map[string]span
}

type span struct {
	at, size int64
	link     string // the name of the entry that it stands for, "" for its own contents
}

// mostBlobs is how many entries an archive of an image may have: more have only root file systems.
const mostBlobs = 20000

// scan lists what a tar archive has, or says that it has too much for one of an image.
func scan(f *os.File) (a *archive, few bool, err error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, false, err
	}
	a = &archive{file: f, entries: map[string]span{}}
	r := tarfile.NewReader(f)
	for range mostBlobs {
		h, err := r.Next()
		if err == io.EOF {
			return a, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		name := inside(h.Name)
		switch h.Type {
		case tarfile.File:
			a.entries[name] = span{at: r.Offset(), size: h.Size}
		case tarfile.Symlink:
			a.entries[name] = span{link: inside(path.Join(path.Dir(name), h.Link))}
		case tarfile.HardLink:
			a.entries[name] = span{link: inside(h.Link)}
		}
	}
	return nil, false, nil
}

func inside(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

func (a *archive) has(name string) bool {
	_, ok := a.entries[name]
	return ok
}

func (a *archive) open(name string) (*blob, error) {
	s, ok := a.entries[inside(name)]
	for hops := 0; ok && s.link != "" && hops < 4; hops++ { // a layer that is another image's too
		s, ok = a.entries[s.link]
	}
	if !ok || s.link != "" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("the archive has no such file")}
	}
	return &blob{Reader: io.NewSectionReader(a.file, s.at, s.size), Closer: io.NopCloser(nil), size: s.size}, nil
}

// mostDocument is more than any manifest or config has, and less than what would hurt.
const mostDocument = 8 << 20

// document reads one whole.
func document(s source, name string) ([]byte, error) {
	b, err := s.open(name)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if b.size > mostDocument {
		return nil, fmt.Errorf("%s has %d bytes", name, b.size)
	}
	text := make([]byte, b.size)
	if _, err := io.ReadFull(b, text); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}
