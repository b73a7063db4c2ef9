package tarfile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// A Writer writes an archive.
type Writer struct {
	out  io.Writer
	left int64
	pad  int64
}

// NewWriter begins an archive.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Add begins an entry. Its contents are written to the Writer.
func (w *Writer) Add(h *Header) error {
	if err := w.end(); err != nil {
		return err
	}
	var b block
	records := map[string]string{}
	text := func(f field, key, value string) {
		if len(value) > f.to-f.from {
			records[key] = value
			value = value[:f.to-f.from]
		}
		copy(b.of(f), value)
	}
	count := func(f field, key string, n int64) {
		if digits := f.to - f.from - 1; n < 0 || n >= 1<<(3*digits) {
			records[key] = strconv.FormatInt(n, 10)
			n = 0
		}
		octal(b.of(f), n)
	}
	text(fieldName, "path", h.Name)
	text(fieldLink, "linkpath", h.Link)
	octal(b.of(fieldMode), int64(h.Mode&0o7777))
	count(fieldUID, "uid", int64(h.UID))
	count(fieldGID, "gid", int64(h.GID))
	size := int64(0)
	if h.Type == File {
		size = h.Size
	}
	count(fieldSize, "size", size)
	if !h.Time.IsZero() {
		count(fieldTime, "mtime", h.Time.Unix())
	}
	b.of(fieldType)[0] = h.Type
	if h.Type == Char || h.Type == Block {
		octal(b.of(fieldMajor), int64(h.Major))
		octal(b.of(fieldMinor), int64(h.Minor))
	}
	for name, value := range h.Xattrs {
		records[xattrKey+name] = value
	}
	if len(records) > 0 {
		if err := w.extend(records); err != nil {
			return err
		}
	}
	w.left, w.pad = size, -size&(blockSize-1)
	return w.block(&b)
}

// extend writes the records that go before an entry.
func (w *Writer) extend(records map[string]string) error {
	keys := make([]string, 0, len(records))
	for key := range records {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	var data []byte
	for _, key := range keys {
		data = append(data, record(key, records[key])...)
	}
	if len(data) > mostExtended {
		return fmt.Errorf("tar archive: the extended attributes of an entry take %d bytes", len(data))
	}
	var b block
	copy(b.of(fieldName), "pax-header")
	octal(b.of(fieldMode), 0o644)
	octal(b.of(fieldSize), int64(len(data)))
	b.of(fieldType)[0] = 'x'
	w.left, w.pad = int64(len(data)), -int64(len(data))&(blockSize-1)
	if err := w.block(&b); err != nil {
		return err
	}
	if _, err := w.Write(data); err != nil {
		return err
	}
	return w.end()
}

// record is a line that begins with its own length.
func record(key, value string) string {
	rest := " " + key + "=" + value + "\n"
	length := len(rest)
	for length != len(rest)+len(strconv.Itoa(length)) {
		length = len(rest) + len(strconv.Itoa(length))
	}
	return strconv.Itoa(length) + rest
}

func (w *Writer) block(b *block) error {
	copy(b.of(fieldMagic), "ustar\x0000")
	copy(b.of(fieldSum), fmt.Sprintf("%06o\x00 ", b.sum()))
	_, err := w.out.Write(b[:])
	return err
}

func octal(f []byte, n int64) { copy(f, fmt.Sprintf("%0*o", len(f)-1, n)) }

// Write writes contents of the entry.
func (w *Writer) Write(p []byte) (int, error) {
	if int64(len(p)) > w.left {
		return 0, errors.New("tar archive: an entry is longer than its header says")
	}
	n, err := w.out.Write(p)
	w.left -= int64(n)
	return n, err
}

func (w *Writer) end() error {
	if w.left > 0 {
		return errors.New("tar archive: an entry is shorter than its header says")
	}
	_, err := w.out.Write(make([]byte, w.pad))
	w.pad = 0
	return err
}

// Close ends the archive.
func (w *Writer) Close() error {
	if err := w.end(); err != nil {
		return err
	}
	_, err := w.out.Write(make([]byte, 2*blockSize))
	return err
}
