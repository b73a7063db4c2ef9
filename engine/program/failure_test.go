package program_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	. "github.com/berth-runtime/berth/engine/program"
)

// record is a failure record as the interpreter writes it.
func record(magic, index, errno, nr uint32) []byte {
	var b []byte
	for _, v := range []uint32{magic, index, errno, nr} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

const magic = 'B'<<24 | 'r'<<16 | 'T'<<8 | 'h'

func TestParseFailure(t *testing.T) {
	good := record(magic, 7, uint32(unix.ENOENT), 59)
	if f, ok := ParseFailure(good); !ok || f != (Failure{Index: 7, Errno: unix.ENOENT, Nr: 59}) {
		t.Errorf("%+v, %v", f, ok)
	}
	for name, b := range map[string][]byte{
		"nothing":        nil,
		"short":          good[:15],
		"long":           append(bytes.Clone(good), 0),
		"other magic":    record(magic+1, 7, 2, 59),
		"index too high": record(magic, MaxOps, 2, 59),
		"no errno":       record(magic, 7, 0, 59),
		"errno too high": record(magic, 7, 4096, 59),
	} {
		if f, ok := ParseFailure(b); ok {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func FuzzParseFailure(f *testing.F) {
	f.Add(record(magic, 7, 2, 59))
	f.Add(record(magic, 0, 4095, 0))
	f.Add([]byte("no record"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := ParseFailure(b)
		if !ok {
			return
		}
		if !bytes.Equal(b, record(magic, uint32(got.Index), uint32(got.Errno), got.Nr)) {
			t.Errorf("%+v from % x", got, b)
		}
	})
}
