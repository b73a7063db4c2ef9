package tarfile

import "time"

// The types of entries.
const (
	File      = '0'
	HardLink  = '1'
	Symlink   = '2'
	Char      = '3'
	Block     = '4'
	Directory = '5'
	FIFO      = '6'
)

// A Header is what stands before an entry.
type Header struct {
	Type         byte
	Name         string
	Link         string // what a HardLink or a Symlink leads to
	Mode         uint32 // permissions, with those of setuid, setgid and sticky
	UID, GID     int
	Size         int64
	Time         time.Time // of the last change
	Major, Minor uint32
	Xattrs       map[string]string
}

const blockSize = 512

// Fields of a header block: where they begin and end.
type field struct{ from, to int }

var (
	fieldName   = field{0, 100}
	fieldMode   = field{100, 108}
	fieldUID    = field{108, 116}
	fieldGID    = field{116, 124}
	fieldSize   = field{124, 136}
	fieldTime   = field{136, 148}
	fieldSum    = field{148, 156}
	fieldType   = field{156, 157}
	fieldLink   = field{157, 257}
	fieldMagic  = field{257, 265} // with the version
	fieldMajor  = field{329, 337}
	fieldMinor  = field{337, 345}
	fieldPrefix = field{345, 500}
)

type block [blockSize]byte

func (b *block) of(f field) []byte { return b[f.from:f.to] }

// sum is the checksum of a block, in which its own field counts as blanks.
func (b *block) sum() (n int64) {
	for i, c := range b {
		if i >= fieldSum.from && i < fieldSum.to {
			c = ' '
		}
		n += int64(c)
	}
	return n
}

const xattrKey = "SCHILY.xattr."
