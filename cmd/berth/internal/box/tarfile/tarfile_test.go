package tarfile

import (
	"archive/tar"
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

func samples() []Header {
	long := strings.Repeat("directory/", 30) + "name"
	return []Header{
		{Type: Directory, Name: "etc/", Mode: 0o1755, UID: 1, GID: 2, Time: time.Unix(1700000000, 0)},
		{Type: File, Name: "etc/passwd", Mode: 0o4644, Size: 5, Time: time.Unix(1, 0)},
		{Type: File, Name: "empty", Mode: 0o600, Time: time.Unix(1, 0)},
		{Type: File, Name: long, Mode: 0o600, Size: 513, UID: 1 << 30, Time: time.Unix(1, 0)},
		{Type: Symlink, Name: "link", Link: long, Mode: 0o777, Time: time.Unix(1, 0)},
		{Type: HardLink, Name: "hard", Link: "etc/passwd", Mode: 0o644, Time: time.Unix(1, 0)},
		{Type: Char, Name: "dev/null", Mode: 0o666, Major: 1, Minor: 3, Time: time.Unix(1, 0)},
		{Type: FIFO, Name: "fifo", Mode: 0o600, Time: time.Unix(1, 0)},
		{Type: File, Name: "caps", Mode: 0o755, Size: 1, Time: time.Unix(1, 0), Xattrs: map[string]string{"security.capability": "\x01\x00\n=\x02", "user.x": "é"}},
	}
}

func write(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, h := range samples() {
		if err := w.Add(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(bytes.Repeat([]byte("x"), int(h.Size))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What we write, archive/tar reads, and so do we.
func TestWriter(t *testing.T) {
	data := write(t)
	theirs, ours := tar.NewReader(bytes.NewReader(data)), NewReader(bytes.NewReader(data))
	for _, want := range samples() {
		h, err := theirs.Next()
		if err != nil {
			t.Fatal(err)
		}
		got := Header{Type: h.Typeflag, Name: h.Name, Link: h.Linkname, Mode: uint32(h.Mode), UID: h.Uid, GID: h.Gid, Size: h.Size, Time: h.ModTime,
			Major: uint32(h.Devmajor), Minor: uint32(h.Devminor)}
		for key, value := range h.PAXRecords {
			if name, ok := strings.CutPrefix(key, xattrKey); ok {
				if got.Xattrs == nil {
					got.Xattrs = map[string]string{}
				}
				got.Xattrs[name] = value
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("archive/tar reads %+v\nof %+v", got, want)
		}
		if text, err := io.ReadAll(theirs); err != nil || int64(len(text)) != want.Size {
			t.Errorf("%s: %d bytes, %v", want.Name, len(text), err)
		}
		mine, err := ours.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(*mine, want) {
			t.Errorf("read %+v\nof %+v", *mine, want)
		}
		if want.Name == "etc/passwd" {
			continue // unread contents are passed over
		}
		if text, err := io.ReadAll(ours); err != nil || string(text) != strings.Repeat("x", int(want.Size)) {
			t.Errorf("%s: %q, %v", want.Name, text, err)
		}
	}
	if _, err := ours.Next(); err != io.EOF {
		t.Error(err)
	}
	if _, err := theirs.Next(); err != io.EOF {
		t.Error(err)
	}
}

// What archive/tar writes in each of its forms, we read.
func TestReader(t *testing.T) {
	for _, format := range []tar.Format{tar.FormatUSTAR, tar.FormatPAX, tar.FormatGNU} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		name := "a/b"
		if format != tar.FormatUSTAR {
			name = strings.Repeat("long/", 60) + "é"
		} else {
			name = strings.Repeat("long/", 30) + "b"
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o640, Uid: 7, Gid: 8, Size: 4, ModTime: time.Unix(12, 0), Format: format}
		if format == tar.FormatGNU {
			h.Uid = 1 << 30
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte("text"))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r := NewReader(&b)
		got, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if got.Name != h.Name || got.Mode != 0o640 || got.UID != h.Uid || got.GID != 8 || got.Size != 4 || !got.Time.Equal(h.ModTime) {
			t.Errorf("%v: %+v", format, got)
		}
		if text, err := io.ReadAll(r); string(text) != "text" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	}
}

func TestReaderRefuses(t *testing.T) {
	whole := write(t)
	for name, data := range map[string][]byte{
		"no archive":   bytes.Repeat([]byte("no archive"), 100),
		"cut header":   whole[:700],
		"cut contents": whole[:1024+513],
		"changed":      append([]byte("X"), whole[1:]...),
	} {
		r := NewReader(bytes.NewReader(data))
		var err error
		for err == nil {
			_, err = r.Next()
			if err == nil {
				_, err = io.Copy(io.Discard, r)
			}
		}
		if err == io.EOF {
			t.Errorf("%s: read to its end", name)
		}
	}
}

// Whatever is read ends, in an error or at the end, and archive/tar agrees on what both accept.
func FuzzReader(f *testing.F) {
	var b bytes.Buffer
	w := NewWriter(&b)
	for _, h := range samples()[:5] {
		h.Size = 0
		_ = w.Add(&h)
	}
	_ = w.Close()
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader(bytes.NewReader(data))
		for {
			h, err := r.Next()
			if err != nil {
				return
			}
			if h.Name == "" || h.Size < 0 {
				t.Fatalf("%+v", h)
			}
			if n, err := io.Copy(io.Discard, r); err == nil && n != h.Size {
				t.Fatalf("%d bytes of %+v", n, h)
			}
		}
	})
}
