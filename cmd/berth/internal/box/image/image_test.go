package image

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-runtime/berth/cmd/berth/internal/box/tarfile"
)

type m = map[string]any

type e = tarfile.Header

func pack(t *testing.T, entries ...e) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tarfile.NewWriter(&b)
	for _, h := range entries {
		text := ""
		if h.Type == tarfile.File {
			text = h.Link // what it holds, here
			h.Size, h.Link = int64(len(text)), ""
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		h.Time = time.Unix(1000, 0)
		err := w.Add(&h)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name, text string) e { return e{Type: tarfile.File, Name: name, Link: text} }
func dir(name string) e        { return e{Type: tarfile.Directory, Name: name} }

func zipped(t *testing.T, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func document2(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// files are those of an image's archive, by their names.
type files map[string][]byte

func (f files) blob(kind string, data []byte) m {
	digest := digestOf(data)
	f["blobs/sha256/"+digest[7:]] = data
	return m{"mediaType": "application/vnd.oci.image." + kind, "digest": digest, "size": len(data)}
}

func configOf(t *testing.T, layers ...[]byte) []byte {
	t.Helper()
	var diffs []string
	for _, l := range layers {
		diffs = append(diffs, digestOf(l))
	}
	return document2(t, m{
		"os": "linux", "architecture": runtime.GOARCH, "history": []any{m{"created_by": "a test"}},
		"config": m{"Env": []string{"PATH=/bin", "A=1"}, "User": "1:2", "Entrypoint": []string{"/entry"}, "Cmd": nil, "WorkingDir": "/work", "Volumes": m{"/v": m{}}},
		"rootfs": m{"type": "layers", "diff_ids": diffs},
	})
}

// layout is an OCI layout: with one compressed layer, an index in the index, an image for another
// machine, and an attestation.
func layout(t *testing.T, layers ...[]byte) files {
	t.Helper()
	f := files{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`)}
	var list []m
	for i, l := range layers {
		if i == 0 {
			list = append(list, f.blob("layer.v1.tar+gzip", zipped(t, l)))
		} else {
			list = append(list, f.blob("layer.v1.tar", l))
		}
	}
	manifest := f.blob("manifest.v1+json", document2(t, m{"schemaVersion": 2, "config": f.blob("config.v1+json", configOf(t, layers...)), "layers": list, "annotations": m{"x": "y"}}))
	manifest["platform"] = m{"os": "linux", "architecture": runtime.GOARCH}
	other := m{"mediaType": manifest["mediaType"], "digest": "sha256:" + strings.Repeat("0", 64), "size": 1, "platform": m{"os": "linux", "architecture": "other"}}
	attestation := m{"mediaType": manifest["mediaType"], "digest": "sha256:" + strings.Repeat("1", 64), "size": 1, "platform": m{"os": "unknown", "architecture": "unknown"}}
	inner := f.blob("index.v1+json", document2(t, m{"schemaVersion": 2, "manifests": []m{other, attestation, manifest}}))
	inner["annotations"] = m{"org.opencontainers.image.ref.name": "one"}
	f["index.json"] = document2(t, m{"schemaVersion": 2, "manifests": []m{inner}})
	return f
}

// savedFiles is what docker save writes, with two images.
func savedFiles(t *testing.T, layers ...[]byte) files {
	t.Helper()
	f := files{"repositories": []byte("{}")}
	var names []string
	for _, l := range layers {
		hex := digestOf(l)[7:]
		f[hex+"/layer.tar"] = l
		names = append(names, hex+"/layer.tar")
	}
	config := configOf(t, layers...)
	f[digestOf(config)[7:]+".json"] = config
	one := m{"Config": digestOf(config)[7:] + ".json", "RepoTags": []string{"registry.test/own/one:latest"}, "Layers": names}
	other := m{"Config": "absent.json", "RepoTags": []string{"other:2"}, "Layers": nil}
	f["manifest.json"] = document2(t, []m{one, other})
	return f
}

func (f files) tar(t *testing.T) []byte {
	t.Helper()
	var entries []e
	for _, name := range f.names() {
		entries = append(entries, file(name, string(f[name])))
	}
	return pack(t, entries...)
}

func (f files) names() (names []string) {
	for name := range f {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// lie writes the files where they are to be found.
func (f files) lie(t *testing.T, dir string) {
	t.Helper()
	for name, data := range f {
		place := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(place), 0o755)
		if err == nil {
			err = os.WriteFile(place, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, dir string) *Cache {
	t.Helper()
	c, err := OpenCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// contents lists what a root has.
func contents(t *testing.T, root string) string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == root || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		list = append(list, strings.TrimPrefix(name, root)+"="+string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}

// leftNothing looks whether a cache has no root, and none that is begun.
func leftNothing(t *testing.T, cache string) {
	t.Helper()
	for _, d := range []string{"roots", "new", "files"} {
		entries, err := os.ReadDir(filepath.Join(cache, d))
		if err != nil || len(entries) != 0 {
			t.Errorf("%s has %v, %v", d, entries, err)
		}
	}
}

func twoLayers(t *testing.T) (lower, upper []byte) {
	t.Helper()
	return pack(t, dir("d"), file("d/a", "1"), file("b", "2"), file("gone", "3")),
		pack(t, file(".wh.gone", ""), dir("d"), file("d/.wh..wh..opq", ""), file("d/new", "4"))
}

const bothLayers = "/b=2 /d/new=4"

// Each form of an image is unpacked to the same, found in the cache when it is asked for again,
// and tells what its command is to get.
func TestForms(t *testing.T) {
	lower, upper := twoLayers(t)
	for name, test := range map[string]struct {
		files files
		data  []byte
		ref   string
	}{
		"layout":               {files: layout(t, lower, upper)},
		"named":                {files: layout(t, lower, upper), ref: ":one"},
		"layout in an archive": {data: layout(t, lower, upper).tar(t)},
		"compressed archive":   {data: zipped(t, layout(t, lower, upper).tar(t))},
		"docker":               {data: savedFiles(t, lower, upper).tar(t), ref: ":own/one"},
		"docker, compressed":   {data: zipped(t, savedFiles(t, lower, upper).tar(t)), ref: ":registry.test/own/one:latest"},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			place := top + "/an:image"
			if test.files != nil {
				test.files.lie(t, place)
			} else if err := os.WriteFile(place, test.data, 0o644); err != nil {
				t.Fatal(err)
			}
			var first string
			for range 2 {
				root, config, err := open(t, top+"/cache").Use(place + test.ref)
				if err != nil {
					t.Fatal(err)
				}
				if got := contents(t, root); got != bothLayers {
					t.Errorf("the root has %s, want %s", got, bothLayers)
				}
				if len(config.Env) != 2 || config.User != "1:2" || len(config.Entrypoint) != 1 || config.Cmd != nil || config.WorkingDir != "/work" {
					t.Errorf("%+v", config)
				}
				if first != "" && root != first {
					t.Errorf("the second time it is %s, not %s", root, first)
				}
				first = root
				for blob, data := range test.files {
					if strings.HasPrefix(blob, "blobs/") && !json.Valid(data) { // layers are not needed again
						_ = os.Remove(filepath.Join(place, blob))
					}
				}
			}
		})
	}
}

// A root file system is found again without reading its archive, until that changes.
func TestPlain(t *testing.T) {
	big := strings.Repeat("x", 2<<20)
	version := func(text string) []byte {
		return pack(t, dir("."), dir("bin"), file("bin/sh", text), file("big", big), e{Type: tarfile.Char, Name: "null", Major: 1, Minor: 3})
	}
	for name, as := range map[string]func([]byte) []byte{"tar": bytes.Clone, "compressed": func(data []byte) []byte { return zipped(t, data) }} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			c := open(t, top+"/cache")
			read := 0
			c.Progress = func(int64, int64) error { read++; return nil }
			use := func(want string) string {
				t.Helper()
				root, config, err := c.Use(top + "/root")
				if err != nil {
					t.Fatal(err)
				}
				if got := contents(t, root); got != "/big="+big+" /bin/sh="+want || config.Entrypoint != nil {
					t.Errorf("%.99s, %+v", got, config)
				}
				return root
			}
			write := func(text string, settle bool) {
				t.Helper()
				f, err := os.Create(top + "/root")
				if err == nil {
					_, err = f.Write(as(version(text)))
				}
				old := time.Unix(1_000_000_000, 0)
				if err = errors.Join(err, os.Chtimes(top+"/root", old, old)); err != nil {
					t.Fatal(err)
				}
				for settled := !settle; !settled; time.Sleep(10 * time.Millisecond) {
					if _, settled, err = stateOf(f); err != nil {
						t.Fatal(err)
					}
				}
				f.Close()
			}
			write("1", true)
			first := use("1")
			if name == "tar" && read == 0 {
				t.Error("it was not read")
			}
			read = 0
			if again := use("1"); again != first || read > 0 {
				t.Errorf("%s, then %s, read in %d parts", first, again, read)
			}
			write("2", false)
			if use("2") == first {
				t.Error("it is the old one")
			}
			write("1", false)
			if use("1") != first {
				t.Error("what it has is there, by another name")
			}
		})
	}
}

// Boxes that start at once with the same image unpack it once, and find it whole.
func TestRace(t *testing.T) {
	lower, upper := twoLayers(t)
	top := t.TempDir()
	layout(t, lower, upper).lie(t, top+"/image")
	if err := os.WriteFile(top+"/plain", lower, 0o644); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 12 {
		all.Add(1)
		go func() {
			defer all.Done()
			name, want := top+"/image", bothLayers
			if i%2 == 1 {
				name, want = top+"/plain", "/b=2 /d/a=1 /gone=3"
			}
			root, _, err := open(t, top+"/cache").Use(name)
			if err != nil {
				t.Error(err)
			} else if got := contents(t, root); got != want {
				t.Errorf("it has %s, want %s", got, want)
			}
		}()
	}
	all.Wait()
	if roots, err := os.ReadDir(top + "/cache/roots"); err != nil || len(roots) != 2 {
		t.Errorf("%v, %v", roots, err)
	}
	if left, err := os.ReadDir(top + "/cache/new"); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// What was killed half-way is never taken for an image, and removed by the next one.
func TestLeftOvers(t *testing.T) {
	lower, upper := twoLayers(t)
	top := t.TempDir()
	layout(t, lower, upper).lie(t, top+"/image")
	c := open(t, top+"/cache")
	for _, name := range []string{c.key(digestOf(lower), digestOf(upper)), "another"} {
		half := top + "/cache/new/" + name
		err := os.MkdirAll(half+"/d/deep", 0o755)
		if err == nil {
			err = os.WriteFile(half+"/d/a", []byte("half"), 0o400)
		}
		if err = errors.Join(err, os.Chmod(half+"/d/deep", 0), os.Chmod(half+"/d", 0o555)); err != nil {
			t.Fatal(err)
		}
	}
	root, _, err := c.Use(top + "/image")
	if err != nil {
		t.Fatal(err)
	}
	if got := contents(t, root); got != bothLayers {
		t.Error(got)
	}
	if left, err := os.ReadDir(top + "/cache/new"); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}
