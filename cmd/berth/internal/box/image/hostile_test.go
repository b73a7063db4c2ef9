package image

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/tarfile"
)

// Each of these is refused, in words, and leaves nothing behind.
func TestRefused(t *testing.T) {
	lower, upper := twoLayers(t)
	damage := func(f files, what func(name string, data []byte) []byte) files {
		for name, data := range f {
			if data = what(name, data); data == nil {
				delete(f, name)
			} else {
				f[name] = data
			}
		}
		return f
	}
	isLayer := func(name string, data []byte) bool {
		return strings.HasPrefix(name, "blobs/") && data[0] != '{' || strings.HasSuffix(name, "layer.tar")
	}
	random := bytes.Repeat([]byte("x"), 100_000)
	for name, test := range map[string]struct {
		data []byte
		ref  string
		want string
	}{
		"another layer": {damage(layout(t, lower, upper), func(name string, data []byte) []byte {
			if isLayer(name, data) {
				return lower
			}
			return data
		}).tar(t), "", "is damaged: its digest is sha256:"},
		"another layer of docker's": {damage(savedFiles(t, lower, upper), func(name string, data []byte) []byte {
			if isLayer(name, data) {
				return lower
			}
			return data
		}).tar(t), ":one", "is damaged: its digest is sha256:"},
		"a layer is missing": {damage(layout(t, lower, upper), func(name string, data []byte) []byte {
			if isLayer(name, data) {
				return nil
			}
			return data
		}).tar(t), "", "the archive has no such file"},
		"another config": {damage(layout(t, lower, upper), func(_ string, data []byte) []byte {
			return bytes.ReplaceAll(data, []byte("/entry"), []byte("/evil!"))
		}).tar(t), "", "is damaged"},
		"another config of docker's": {damage(savedFiles(t, lower, upper), func(_ string, data []byte) []byte {
			return bytes.ReplaceAll(data, []byte("/entry"), []byte("/evil!"))
		}).tar(t), ":one", "is damaged"},
		"no such image":        {layout(t, lower).tar(t), ":two", "no image two"},
		"several":              {savedFiles(t, lower).tar(t), "", "say which by FILE:NAME (other:2, registry.test/own/one:latest)"},
		"a name of none":       {pack(t, file("a", "1")), ":one", "it is a root file system"},
		"leads out":            {pack(t, file("a", "1"), file("../../evil", "1")), "", "leads out"},
		"leads out of a layer": {layout(t, pack(t, file("../evil", "1"))).tar(t), "", "leads out"},
		"cut off":              {pack(t, file("a", string(random)))[:50_000], "", "cut off"},
		"cut off, compressed":  {zipped(t, pack(t, file("a", string(random))))[:120], "", "expand it: gzip: stdin: unexpected end of file"},
		"no archive":           {random, "", "no tar archive"},
		"empty":                {nil, "", "cut off"},
		"no gzip":              {[]byte("\x1f\x8b and more"), "", "expand it: gzip: stdin: "},
		"no digest": {damage(layout(t, lower), func(name string, data []byte) []byte {
			if name == "index.json" {
				return []byte(`{"manifests":[{"digest":"sha256:../../../../etc/passwd","size":1}]}`)
			}
			return data
		}).tar(t), "", "no digest of the form"},
		"an index that is itself": {indexOfItself(t), "", "lead to further ones without an end"},
		"a config too large": {files{"manifest.json": []byte(`[{"Config":"c.json","Layers":[]}]`), "c.json": bytes.Repeat([]byte(" "), mostDocument+1)}.tar(t),
			"", "has 8388609 bytes"},
		"docker's with links": {pack(t, file("manifest.json", `[{"Config":"c","Layers":["l"]}]`), e{Type: tarfile.Symlink, Name: "c", Link: "l"},
			e{Type: tarfile.Symlink, Name: "l", Link: "c"}), "", "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			if err := os.WriteFile(top+"/image", test.data, 0o644); err != nil {
				t.Fatal(err)
			}
			_, _, err := open(t, top+"/cache").Use(top + "/image" + test.ref)
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %q", err, test.want)
			}
			leftNothing(t, top+"/cache")
			if evil, _ := filepath.Glob(top + "/evil"); len(evil) != 0 {
				t.Error(evil)
			}
		})
	}
}

// indexOfItself is a chain of indexes longer than any is.
func indexOfItself(t *testing.T) []byte {
	t.Helper()
	f := files{"oci-layout": []byte("{}")}
	d := m{"mediaType": "application/vnd.oci.image.index.v1+json", "digest": "sha256:" + strings.Repeat("0", 64), "size": 1}
	for range 6 {
		d = f.blob("index.v1+json", document2(t, m{"manifests": []m{d}}))
	}
	f["index.json"] = document2(t, m{"manifests": []m{d}})
	return f.tar(t)
}

// An end half-way, as by Ctrl-C, leaves nothing.
func TestInterrupted(t *testing.T) {
	top := t.TempDir()
	big := pack(t, file("a", strings.Repeat("x", 3<<20)), file("b", ""))
	for name, f := range map[string][]byte{"layout": layout(t, pack(t, file("z", "1")), big).tar(t), "plain": big} {
		if err := os.WriteFile(top+"/"+name, f, 0o644); err != nil {
			t.Fatal(err)
		}
		c := open(t, top+"/cache")
		stop := errors.New("stopped")
		c.Progress = func(done, total int64) error {
			if done > total || total < 3<<20 {
				t.Errorf("%d of %d", done, total)
			}
			return stop
		}
		if _, _, err := c.Use(top + "/" + name); !errors.Is(err, stop) {
			t.Error(err)
		}
		leftNothing(t, top+"/cache")
	}
}

// Others get nowhere: a program that is setuid in an image would give them its owner's rights.
func TestCacheIsPrivate(t *testing.T) {
	top := t.TempDir()
	if err := os.MkdirAll(top+"/cache", 0o755); err != nil {
		t.Fatal(err)
	}
	open(t, top+"/cache")
	if info, err := os.Stat(top + "/cache"); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can make a directory of another's")
	}
	if err := os.Chown(top+"/cache", 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCache(top + "/cache"); err == nil || !strings.Contains(err.Error(), "belongs to the user 12345") {
		t.Error(err)
	}
}
