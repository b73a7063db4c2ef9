package image

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A found is an image before it is unpacked.
type found struct {
	source source
	config *Config
	text   []byte // that the config was read from
	layers []part
	total  int64 // of the layers, as they lie there
}

// A part is a layer as it lies in a source.
type part struct {
	name   string
	digest string // of it as it lies there, "" where only the one of its contents is known
	diff   string // the digest of its contents, unpacked
}

// ofLayout finds the image of an OCI layout.
func ofLayout(s source, ref string) (*found, error) {
	text, err := document(s, "index.json")
	if err != nil {
		return nil, err
	}
	list, err := readIndex(text)
	if err != nil {
		return nil, fmt.Errorf("index.json: %w", err)
	}
	chosen, err := chooseDescriptor(list, ref)
	for depth := 0; err == nil && chosen.isIndex(); depth++ {
		if depth == 4 {
			return nil, errors.New("its indexes lead to further ones without an end")
		}
		if text, err = checked(s, chosen.digest); err != nil {
			return nil, err
		}
		if list, err = readIndex(text); err != nil {
			return nil, fmt.Errorf("%s: %w", chosen.digest, err)
		}
		chosen, err = chooseDescriptor(list, "")
	}
	if err != nil {
		return nil, err
	}
	if text, err = checked(s, chosen.digest); err != nil {
		return nil, err
	}
	config, layers, err := readManifest(text)
	if err != nil {
		return nil, fmt.Errorf("manifest %s: %w", chosen.digest, err)
	}
	f := &found{source: s}
	if f.text, err = checked(s, config.digest); err != nil {
		return nil, err
	}
	for _, l := range layers {
		name, err := blobName(l.digest)
		if err != nil {
			return nil, err
		}
		f.layers = append(f.layers, part{name: name, digest: l.digest})
	}
	return f.complete()
}

// chooseDescriptor takes the one that is meant: by its name, else the only one for this machine.
func chooseDescriptor(list []descriptor, ref string) (descriptor, error) {
	var fit []descriptor
	var names []string
	for _, d := range list {
		if !d.isManifest() {
			continue
		}
		names = append(names, d.names...)
		if ref != "" && !slices.ContainsFunc(d.names, func(name string) bool { return isNamed(name, ref) }) {
			continue
		}
		if d.fits() && !slices.ContainsFunc(fit, func(other descriptor) bool { return other.digest == d.digest }) {
			fit = append(fit, d)
		}
	}
	if len(fit) == 1 {
		return fit[0], nil
	}
	return descriptor{}, oneOf(len(fit), ref, names)
}

// oneOf says why none was chosen.
func oneOf(fit int, ref string, names []string) error {
	slices.Sort(names)
	list := strings.Join(slices.Compact(names), ", ")
	switch {
	case fit > 1 && list != "" && ref == "":
		return fmt.Errorf("it has several images: say which by FILE:NAME (%s)", list)
	case fit > 1:
		return errors.New("it has several images that go by the same name")
	case ref != "" && list != "":
		return fmt.Errorf("it has no image %s for this machine; it has %s", ref, list)
	case ref != "":
		return fmt.Errorf("it has no image %s, and none with a name", ref)
	}
	return errors.New("it has no image for this machine")
}

// isNamed reports whether REPOSITORY:TAG or what leads to it is what was asked for.
func isNamed(name, ref string) bool {
	if name == ref || name == ref+":latest" {
		return true
	}
	_, short, ok := strings.Cut(name, "/")
	return ok && isNamed(short, ref) || strings.HasSuffix(name, ":"+ref)
}

// ofSaved finds the image of an archive that "docker save" has written.
func ofSaved(s source, ref string) (*found, error) {
	text, err := document(s, "manifest.json")
	if err != nil {
		return nil, err
	}
	list, err := readSaved(text)
	if err != nil {
		return nil, fmt.Errorf("manifest.json: %w", err)
	}
	var fit []saved
	var names []string
	for _, one := range list {
		names = append(names, one.tags...)
		if ref == "" || slices.ContainsFunc(one.tags, func(tag string) bool { return isNamed(tag, ref) }) {
			fit = append(fit, one)
		}
	}
	if len(fit) != 1 {
		return nil, oneOf(len(fit), ref, names)
	}
	f := &found{source: s}
	if f.text, err = document(s, fit[0].config); err != nil {
		return nil, err
	}
	// Its name is its digest, in all forms of such archives.
	if hex := strings.TrimSuffix(path.Base(fit[0].config), ".json"); isHash(hex) {
		if got := digestOf(f.text); got != "sha256:"+hex {
			return nil, wrongDigest(fit[0].config, "sha256:"+hex, got)
		}
	}
	for _, name := range fit[0].layers {
		f.layers = append(f.layers, part{name: name})
	}
	return f.complete()
}

// complete reads the config, and holds the layers against it.
func (f *found) complete() (*found, error) {
	config, err := readConfig(f.text)
	if err != nil {
		return nil, fmt.Errorf("the image's config: %w", err)
	}
	if len(config.diffs) != len(f.layers) || len(f.layers) == 0 {
		return nil, fmt.Errorf("the image has %d layers, and its config names %d", len(f.layers), len(config.diffs))
	}
	f.config = config
	for i := range f.layers {
		f.layers[i].diff = config.diffs[i]
	}
	return f, nil
}

func blobName(digest string) (string, error) {
	hex, err := hexOf(digest)
	return "blobs/sha256/" + hex, err
}

// checked reads a document of a layout, which is named by its digest.
func checked(s source, digest string) ([]byte, error) {
	name, err := blobName(digest)
	if err != nil {
		return nil, err
	}
	text, err := document(s, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w (a layout of which a part was left out?)", err)
	}
	if err != nil {
		return nil, err
	}
	if got := digestOf(text); got != digest {
		return nil, wrongDigest(name, digest, got)
	}
	return text, nil
}

func wrongDigest(name, want, got string) error {
	return fmt.Errorf("%s is damaged: its digest is %s, and should be %s", name, got, want)
}
