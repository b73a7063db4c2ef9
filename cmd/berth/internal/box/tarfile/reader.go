package tarfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// A Reader reads an archive from its beginning to its end.
type Reader struct {
	in   io.Reader
	left int64 // of the entry that was read last
	pad  int64 // after it
	at   int64 // how much has been read
}

// NewReader begins to read an archive.
func NewReader(in io.Reader) *Reader { return &Reader{in: in} }

// mostExtended is how large a name, or the records of one entry, may be: more than any system
// takes, and less than what would hurt to have in memory.
const mostExtended = 1 << 20

// Offset is where the contents of the entry are in the stream, of which Next has just told.
func (r *Reader) Offset() int64 { return r.at }

// Next goes to the next entry; io.EOF says that there is none. The contents can be read from the
// Reader until the next call.
func (r *Reader) Next() (*Header, error) {
	var extended map[string]string
	longName, longLink := "", ""
	for {
		if err := r.skip(); err != nil {
			return nil, err
		}
		b, err := r.block()
		if err != nil {
			return nil, err
		}
		h, err := parse(b)
		if err != nil {
			return nil, err
		}
		r.left, r.pad = h.Size, -h.Size&(blockSize-1)
		switch h.Type {
		case 'x':
			if extended, err = r.records(h.Size); err != nil {
				return nil, err
			}
		case 'g': // of all entries: comments, mostly
		case 'L':
			longName, err = r.text(h.Size)
		case 'K':
			longLink, err = r.text(h.Size)
		default:
			return h, r.finish(h, extended, longName, longLink)
		}
		if err != nil {
			return nil, err
		}
	}
}

// finish puts together what stood before an entry.
func (r *Reader) finish(h *Header, extended map[string]string, longName, longLink string) error {
	if longName != "" {
		h.Name = longName
	}
	if longLink != "" {
		h.Link = longLink
	}
	for key, value := range extended {
		if err := h.extend(key, value); err != nil {
			return fmt.Errorf("tar archive: entry %q: %w", h.Name, err)
		}
	}
	switch h.Type {
	case 0, '7': // of old, and contiguous
		h.Type = File
		if strings.HasSuffix(h.Name, "/") {
			h.Type = Directory // as archives from before POSIX have them
		}
	case File:
	case HardLink, Symlink, Char, Block, Directory, FIFO:
		// Some writers tell the size of what a hard link leads to; no contents follow.
		h.Size = 0
	case 'S':
		return fmt.Errorf("tar archive: %q is a sparse file in GNU tar's form, which is not read (make the archive without --sparse)", h.Name)
	default:
		return fmt.Errorf("tar archive: %q has the unknown type %q", h.Name, h.Type)
	}
	r.left, r.pad = h.Size, -h.Size&(blockSize-1)
	if h.Name == "" || strings.ContainsRune(h.Name, 0) || strings.ContainsRune(h.Link, 0) {
		return fmt.Errorf("tar archive: an entry has the name %q", h.Name)
	}
	return nil
}

func (h *Header) extend(key, value string) (err error) {
	switch key {
	case "path":
		h.Name = value
	case "linkpath":
		h.Link = value
	case "size":
		if h.Size, err = strconv.ParseInt(value, 10, 64); err == nil && h.Size < 0 {
			err = errors.New("its size is negative")
		}
	case "uid":
		h.UID, err = strconv.Atoi(value)
	case "gid":
		h.GID, err = strconv.Atoi(value)
	case "mtime":
		h.Time, err = parseTime(value)
	default:
		if name, ok := strings.CutPrefix(key, xattrKey); ok {
			if h.Xattrs == nil {
				h.Xattrs = map[string]string{}
			}
			h.Xattrs[name] = value
		} else if strings.HasPrefix(key, "GNU.sparse.") {
			err = errors.New("it is a sparse file in GNU tar's form, which is not read (make the archive without --sparse)")
		}
	}
	return err
}

func parseTime(text string) (time.Time, error) {
	whole, part, _ := strings.Cut(text, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	nanos := int64(0)
	if part != "" {
		part = (part + "000000000")[:9]
		if nanos, err = strconv.ParseInt(part, 10, 64); err != nil {
			return time.Time{}, err
		}
		if strings.HasPrefix(whole, "-") {
			nanos = -nanos
		}
	}
	return time.Unix(seconds, nanos), nil
}

// Read reads from the contents of the entry.
func (r *Reader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.in.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	r.at += int64(n)
	if err == io.EOF && r.left > 0 {
		err = errCut
	} else if err == io.EOF {
		err = nil
	}
	return n, err
}

var errCut = errors.New("tar archive: it is cut off: its end is missing")

// skip passes over what is left of an entry.
func (r *Reader) skip() error {
	n := r.left + r.pad
	r.left, r.pad = 0, 0
	if n == 0 {
		return nil
	}
	if s, ok := r.in.(io.Seeker); ok {
		// Most archives are files, and most of their contents are not looked at. What was cut off
		// is noticed by the next block, which is missing.
		if _, err := s.Seek(n, io.SeekCurrent); err == nil {
			r.at += n
			return nil
		}
	}
	done, err := io.CopyN(io.Discard, r.in, n)
	r.at += done
	if err == io.EOF {
		return errCut
	}
	return err
}

// block reads a header block. The archive ends with one of zeros: one that ends otherwise was cut
// off.
func (r *Reader) block() (*block, error) {
	b := new(block)
	n, err := io.ReadFull(r.in, b[:])
	r.at += int64(n)
	switch {
	case err == io.ErrUnexpectedEOF, err == io.EOF:
		return nil, errCut
	case err != nil:
		return nil, err
	case *b == block{}:
		return nil, io.EOF
	}
	return b, nil
}

func (r *Reader) whole(size int64) ([]byte, error) {
	if size > mostExtended {
		return nil, fmt.Errorf("tar archive: a name or the records of an entry take %d bytes", size)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, errCut
	}
	return data, nil
}

func (r *Reader) text(size int64) (string, error) {
	data, err := r.whole(size)
	return untilZero(data), err
}

// records reads the extended header of an entry: lines of length, key and value.
func (r *Reader) records(size int64) (map[string]string, error) {
	data, err := r.whole(size)
	if err != nil {
		return nil, err
	}
	records := map[string]string{}
	for len(data) > 0 {
		blank := bytes.IndexByte(data, ' ')
		if blank < 0 {
			return nil, errors.New("tar archive: an extended header has no length")
		}
		length, err := strconv.Atoi(string(data[:blank]))
		if err != nil || length <= blank+1 || length > len(data) || data[length-1] != '\n' {
			return nil, errors.New("tar archive: an extended header has a wrong length")
		}
		key, value, ok := strings.Cut(string(data[blank+1:length-1]), "=")
		if !ok {
			return nil, errors.New("tar archive: an extended header has a record without =")
		}
		records[key] = value
		data = data[length:]
	}
	return records, nil
}

func parse(b *block) (*Header, error) {
	sum, err := number(b.of(fieldSum))
	if err != nil || sum != b.sum() {
		return nil, errors.New("tar archive: a header has a wrong checksum: it is no tar archive, or damaged")
	}
	h := &Header{Type: b.of(fieldType)[0], Name: untilZero(b.of(fieldName)), Link: untilZero(b.of(fieldLink))}
	if string(b.of(fieldMagic)) == "ustar\x0000" {
		if prefix := untilZero(b.of(fieldPrefix)); prefix != "" {
			h.Name = prefix + "/" + h.Name
		}
	}
	read := func(f field) int64 {
		n, e := number(b.of(f))
		if e != nil && err == nil {
			err = e
		}
		return n
	}
	h.Mode = uint32(read(fieldMode)) & 0o7777
	h.UID, h.GID = int(read(fieldUID)), int(read(fieldGID))
	h.Size, h.Time = read(fieldSize), time.Unix(read(fieldTime), 0)
	if h.Type == Char || h.Type == Block {
		h.Major, h.Minor = uint32(read(fieldMajor)), uint32(read(fieldMinor))
	}
	if err == nil && h.Size < 0 {
		err = errors.New("its size is negative")
	}
	if err != nil {
		return nil, fmt.Errorf("tar archive: entry %q: %w", h.Name, err)
	}
	return h, nil
}

// number reads octal digits, or where the highest bit is set a binary number, as GNU tar writes
// those that are too large.
func number(text []byte) (int64, error) {
	if text[0]&0x80 != 0 {
		n := int64(text[0] & 0x3f)
		if text[0]&0x40 != 0 {
			n -= 0x40
		}
		for _, c := range text[1:] {
			if n > 1<<54 || n < -1<<54 {
				return 0, errors.New("a number is too large")
			}
			n = n<<8 | int64(c)
		}
		return n, nil
	}
	digits := strings.Trim(untilZero(text), " ")
	if digits == "" {
		return 0, nil
	}
	return strconv.ParseInt(digits, 8, 64)
}

func untilZero(text []byte) string {
	if i := bytes.IndexByte(text, 0); i >= 0 {
		text = text[:i]
	}
	return string(text)
}
