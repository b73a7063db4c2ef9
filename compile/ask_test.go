package compile

import (
	"encoding/binary"
	"testing"
)

// What an init sends is a record of exactly one form; whatever else comes from it is none.
func FuzzParseAsk(f *testing.F) {
	record := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, askMagic|uint64(Forked)<<32), 4711)
	for _, seed := range [][]byte{nil, record, record[:15], append(record[:16:16], 0), make([]byte, 16)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		ask, ok := ParseAsk(data)
		if !ok {
			return
		}
		again := binary.NativeEndian.AppendUint64(binary.NativeEndian.AppendUint64(nil, askMagic|uint64(ask.Kind)<<32), ask.Value)
		if string(again) != string(data) {
			t.Errorf("%x was read as %+v", data, ask)
		}
	})
}
