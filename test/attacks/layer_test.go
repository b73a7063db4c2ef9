package attacks

import (
	"archive/tar"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/harness"
)

// archive writes a layer as a stranger would.
func archive(t *testing.T, file string, entries ...tar.Header) {
	t.Helper()
	f, err := os.Create(file)
	check(t, err)
	w := tar.NewWriter(f)
	for i := range entries {
		h := &entries[i]
		h.Format = tar.FormatPAX
		text := h.PAXRecords["comment"] // what the file holds
		h.Size = int64(len(text))
		check(t, w.WriteHeader(h))
		_, err := w.Write([]byte(text))
		check(t, err)
	}
	check(t, w.Close())
	check(t, f.Close())
}

func holding(text string, attributes ...string) map[string]string {
	records := map[string]string{"comment": text}
	for i := 0; i < len(attributes); i += 2 {
		records["SCHILY.xattr."+attributes[i]] = attributes[i+1]
	}
	return records
}

// setuidCapability is cap_setuid+ep as a file has it (struct vfs_cap_data).
func setuidCapability() string {
	text := binary.LittleEndian.AppendUint32(nil, 0x02000001)
	text = binary.LittleEndian.AppendUint32(text, 1<<unix.CAP_SETUID)
	return string(append(text, make([]byte, 12)...))
}

// What a box would apply is shown, all of it: also what gives a program capabilities, and another
// name to a file of the host's.
func TestLayerHidesNothing(t *testing.T) {
	b := harness.New(t)
	root := b.Path("machine")
	makeTree(t, root, map[string]string{"tool": "a tool", "secret": "the host's"}, nil)
	check(t, os.Chmod(filepath.Join(root, "tool"), 0o755))
	check(t, os.Chmod(filepath.Join(root, "secret"), 0o600))
	file := b.Path("layer.tar")
	archive(t, file,
		tar.Header{Name: "tool", Mode: 0o755, PAXRecords: holding("a tool", "security.capability", setuidCapability())},
		tar.Header{Name: "new", Mode: 0o755, PAXRecords: holding("new", "security.capability", setuidCapability())},
		tar.Header{Name: "readme", Typeflag: tar.TypeLink, Linkname: "secret", Mode: 0o644})
	shown := b.Berth("box", "--rootfs", root, "--apply", file).Exits(t, 125).Stdout
	for _, want := range []string{"M -rwxr-xr-x 0:0            6B /tool with security.capability", "/new with security.capability", "A -rw------- 0:0           10B /readme another name of /secret"} {
		if !strings.Contains(shown, want) {
			t.Errorf("it does not show %q:\n%s", want, shown)
		}
	}
	harness.Report(t, "attacks", 3)
}

// A layer is applied as it was shown, whatever its owner makes of it meanwhile.
func TestLayerIsExchangedWhenShown(t *testing.T) {
	b := harness.New(t)
	root, file, other := b.Path("machine"), b.Path("layer.tar"), b.Path("other.tar")
	makeTree(t, root, nil, nil)
	archive(t, file, tar.Header{Name: "file", Mode: 0o644, PAXRecords: holding("shown")})
	archive(t, other, tar.Header{Name: "file", Mode: 0o644, PAXRecords: holding("other")})
	evil, err := os.ReadFile(other)
	check(t, err)
	check(t, os.Chown(file, 1234, 1234))
	stops, err := harness.ListenStops(b.Path("steps"))
	check(t, err)
	defer stops.Close()
	cmd := b.Command("box", "--rootfs", root, "--apply", file, "--yes")
	cmd.Wrap = []string{harness.Fault(t), "-tell", b.Path("steps"), "--"}
	running, exchanged := cmd.Start(), false
	check(t, stops.Follow(func(s harness.Stop) {
		if s.Name == "write" && !exchanged { // of what is shown
			exchanged = true
			check(t, os.WriteFile(file, evil, 0o644))
		}
	}))
	running.Wait().OK(t)
	if text, err := os.ReadFile(filepath.Join(root, "file")); !exchanged || string(text) != "shown" {
		t.Errorf("exchanged %v, and the file is %q, %v", exchanged, text, err)
	}
	harness.Report(t, "attacks", 1)
}

// Who gets a FIFO of a layer puts a link in its place before it has its mode. The mode is not the
// target's.
func TestLayersFIFOIsExchanged(t *testing.T) {
	b := harness.New(t)
	root, file := b.Path("machine"), b.Path("layer.tar")
	makeTree(t, root, map[string]string{"program": "the host's"}, []string{"tmp"})
	check(t, os.Chmod(filepath.Join(root, "program"), 0o755))
	archive(t, file, tar.Header{Name: "tmp/pipe", Typeflag: tar.TypeFifo, Uid: 1234, Mode: 0o6777})
	stops, err := harness.ListenStops(b.Path("steps"))
	check(t, err)
	defer stops.Close()
	cmd := b.Command("box", "--rootfs", root, "--apply", file, "--yes")
	cmd.Wrap = []string{harness.Fault(t), "-tell", b.Path("steps"), "--"}
	running, owned, exchanged := cmd.Start(), false, false
	check(t, stops.Follow(func(s harness.Stop) {
		if owned && !exchanged {
			pipe := filepath.Join(root, "tmp/pipe")
			check(t, os.Remove(pipe))
			check(t, os.Symlink("../program", pipe))
			exchanged = true
		}
		owned = owned || s.Name == "fchownat"
	}))
	if r := running.Wait(); r.Code == 0 {
		t.Errorf("it has not noticed: %+v", r)
	}
	info, err := os.Stat(filepath.Join(root, "program"))
	if err != nil || !exchanged || info.Mode() != 0o755 {
		t.Errorf("exchanged %v, and the program is %v, %v", exchanged, info, err)
	}
	harness.Report(t, "attacks", 1)
}

// A file that holds nothing and says that it is huge fills no disk of who keeps a box's changes.
func TestKeptFileIsHuge(t *testing.T) {
	b := harness.New(t)
	saved := b.Path("saved.tar")
	r := b.Berth("box", "--ro", harness.Helper(t)+":/opt/inside", "--save", saved, "--", "/bin/sh", "-c", "truncate -s 1000T /var/huge || dd if=/dev/zero of=/var/huge bs=1 count=1 seek=1000T")
	if !strings.Contains(r.Stderr, "/var/huge") || !strings.Contains(r.Stderr, "sparse") {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(saved); err == nil && info.Size() > 1<<20 || err != nil && !os.IsNotExist(err) {
		t.Errorf("%v, %v", info, err)
	}
	harness.Report(t, "attacks", 1)
}
