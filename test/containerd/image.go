package containerd

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Image makes an image of the root file system, with one layer, and imports it
// into one of containerd's namespaces.
func (d *Daemon) Image(namespace, name string, args ...string) {
	d.T.Helper()
	path := filepath.Join(d.Dir, "image.tar")
	if err := os.WriteFile(path, Archive(d.T, d.Root, name, args), 0o600); err != nil {
		d.T.Fatal(err)
	}
	defer os.Remove(path)
	cmd := exec.Command(d.Release.Ctr, "--address", d.Dir+"/c.sock", "--namespace", namespace, "images", "import", path)
	if out, err := cmd.CombinedOutput(); err != nil {
		d.T.Fatalf("import the image: %v\n%s", err, out)
	}
}

// Archive is a tar archive with the OCI image layout of an image of a root file system, with one
// layer.
func Archive(t testing.TB, root, name string, args []string) []byte {
	t.Helper()
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	add := func(path string, content []byte) {
		if err := w.WriteHeader(&tar.Header{Name: path, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		w.Write(content)
	}
	type object map[string]any
	text := func(o object) []byte {
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	blob := func(mediaType string, content []byte) object {
		sum := sha256.Sum256(content)
		add("blobs/sha256/"+hex.EncodeToString(sum[:]), content)
		return object{"mediaType": "application/vnd.oci.image." + mediaType, "digest": "sha256:" + hex.EncodeToString(sum[:]), "size": len(content)}
	}
	layer := blob("layer.v1.tar", layerOf(t, root))
	config := blob("config.v1+json", text(object{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": object{"Entrypoint": args, "Env": []string{"PATH=/bin"}},
		"rootfs": object{"type": "layers", "diff_ids": []any{layer["digest"]}},
	}))
	manifest := blob("manifest.v1+json", text(object{"schemaVersion": 2, "config": config, "layers": []any{layer}}))
	manifest["annotations"] = object{"io.containerd.image.name": name}
	add("index.json", text(object{"schemaVersion": 2, "manifests": []any{manifest}}))
	add("oci-layout", text(object{"imageLayoutVersion": "1.0.0"}))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func layerOf(t testing.TB, root string) []byte {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		target := ""
		if info.Mode()&fs.ModeSymlink != 0 {
			if target, err = os.Readlink(path); err != nil {
				return err
			}
		}
		header, err := tar.FileInfoHeader(info, target)
		if err != nil {
			return err
		}
		if header.Name, err = filepath.Rel(root, path); err != nil {
			return err
		}
		if err := w.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if err == nil {
			_, err = w.Write(content)
		}
		return err
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return layer.Bytes()
}
