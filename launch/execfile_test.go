package launch

import (
	"encoding/binary"
	"math"
	"testing"
)

// header is the head of an ELF file with one program header, at phoff, that says where
// the name of the interpreter is.
func header(phoff, offset, size uint64) []byte {
	le := binary.LittleEndian
	head := make([]byte, 4096)
	copy(head, "\x7fELF\x02\x01\x01")
	le.PutUint64(head[32:], phoff)
	le.PutUint16(head[54:], 56)
	le.PutUint16(head[56:], 1)
	if phoff <= 4096-56 {
		le.PutUint32(head[phoff:], elfInterp)
		le.PutUint64(head[phoff+8:], offset)
		le.PutUint64(head[phoff+32:], size)
	}
	copy(head[512:], "/lib/ld.so\x00")
	return head
}

// The headers are the container's to make up.
func TestInterpreterOf(t *testing.T) {
	for _, test := range []struct {
		phoff, offset, size uint64
		want                string
	}{
		{64, 512, 11, "/lib/ld.so"},
		{64, 512, 0, ""},
		{64, 4096, 11, ""},
		{64, math.MaxUint64, 2, ""},
		{64, 2, math.MaxUint64, ""},
		{4096 - 55, 512, 11, ""},
		{math.MaxInt64, 512, 11, ""},
		{math.MaxInt64 - 20, 512, 11, ""},
		{math.MaxUint64, 512, 11, ""},
	} {
		if got := interpreterOf(header(test.phoff, test.offset, test.size), binary.LittleEndian); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

func FuzzInterpreterOf(f *testing.F) {
	f.Add(header(64, 512, 11))
	f.Add(header(math.MaxInt64, 0, 0))
	f.Fuzz(func(t *testing.T, head []byte) {
		if len(head) >= 20 {
			interpreterOf(head, binary.LittleEndian)
			interpreterOf(head, binary.BigEndian)
		}
	})
}
