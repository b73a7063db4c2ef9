package image

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// The library's sums are ours, for all lengths about the size of a block and however they are cut.
func TestSum(t *testing.T) {
	data := make([]byte, 300)
	for i := range data {
		data[i] = byte(i * 7)
	}
	for n := range data {
		checkSum(t, data[:n], n/3)
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte("abc"), 1)
	f.Fuzz(func(t *testing.T, data []byte, cut int) { checkSum(t, data, cut) })
}

func checkSum(t *testing.T, data []byte, cut int) {
	t.Helper()
	cut = max(0, min(cut, len(data)))
	s := newSum()
	_, _ = s.Write(data[:cut])
	_, _ = s.Write(data[cut:])
	want := sha256.Sum256(data)
	if got := s.digest(); got != "sha256:"+hex.EncodeToString(want[:]) {
		t.Errorf("%d bytes, cut at %d: %s", len(data), cut, got)
	}
}

func BenchmarkSum(b *testing.B) {
	data := make([]byte, 1<<20)
	b.SetBytes(int64(len(data)))
	s := newSum()
	for range b.N {
		_, _ = s.Write(data)
	}
}
