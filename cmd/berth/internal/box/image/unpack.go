package image

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/layer"
)

// mostEntries is how many files an image may have: ten times what the largest ones do. Each takes
// memory while it is unpacked.
const mostEntries = 10_000_000

// key names the root that a list of layers makes. Without owners it is another one.
func (c *Cache) key(parts ...string) string {
	text := fmt.Sprintf("berth root 1, owners %t\n%s", c.Owners, strings.Join(parts, "\n"))
	return digestOf([]byte(text))[len("sha256:"):]
}

// A meter tells of what is read from an archive.
type meter struct {
	in          io.Reader
	done, total int64
	told        int64
	tell        func(done, total int64) error
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.in.Read(p)
	m.done += int64(n)
	if m.done-m.told >= 1<<20 {
		m.told = m.done
		if stop := m.tell(m.done, m.total); stop != nil {
			return n, stop
		}
	}
	return n, err
}

// apply brings a layer to a tree, and tells the digests of it as it lies there and of its contents.
func apply(tree *layer.Tree, in io.Reader) (digest, diff string, err error) {
	outer := newSum()
	packed := io.TeeReader(in, outer)
	contents, err := expand(packed)
	if err != nil {
		return "", "", err
	}
	inner := outer // of the same bytes
	whole := io.Reader(contents)
	if contents.cmd != nil {
		inner = newSum()
		whole = bufio.NewReaderSize(io.TeeReader(contents, inner), 1<<18)
	}
	err = tree.Apply(whole)
	if err == nil {
		// What follows the end of an archive belongs to the digests.
		_, err = io.Copy(io.Discard, whole)
	}
	if failed := contents.Close(); failed != nil {
		err = failed // for which the archive was cut off
	}
	if err == nil {
		_, err = io.Copy(io.Discard, packed)
	}
	if err != nil {
		return "", "", err
	}
	diff = inner.digest()
	if inner == outer {
		return diff, diff, nil
	}
	return outer.digest(), diff, nil
}

// unpack makes a root of an image's layers.
func (c *Cache) unpack(f *found, dir string) error {
	tree, err := layer.Open(dir)
	if err != nil {
		return err
	}
	defer tree.Close()
	tree.Owners, tree.Most = c.Owners, mostEntries
	m := &meter{tell: c.Progress}
	for i, p := range f.layers {
		b, err := f.source.open(p.name)
		if err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
		if i == 0 {
			m.total = f.total
		}
		m.in = b
		digest, diff, err := apply(tree, m)
		b.Close()
		if err == nil && p.digest != "" && digest != p.digest {
			err = wrongDigest(p.name, p.digest, digest)
		}
		if err == nil && diff != p.diff {
			err = wrongDigest("what "+p.name+" has", p.diff, diff)
		}
		if err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
	}
	return tree.Finish()
}

// measure adds up how much is to be read.
func (f *found) measure() error {
	for i, p := range f.layers {
		b, err := f.source.open(p.name)
		if err != nil {
			return fmt.Errorf("layer %d: %w", i+1, err)
		}
		f.total += b.size
		b.Close()
	}
	return nil
}
