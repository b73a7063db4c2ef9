package cgroup

import (
	"bytes"
	"iter"
)

// The kernel's texts come in four shapes (cgroup-v2.rst, "Format"): one value,
// a list of values, "KEY VALUE" lines, and "KEY SUBKEY=VALUE…" lines.

// flatKeyed goes through "KEY VALUE" lines with whole numbers. Lines of
// another form are passed over: new kernels add lines.
func flatKeyed(text []byte) iter.Seq2[string, uint64] {
	return func(yield func(string, uint64) bool) {
		for len(text) > 0 {
			var line []byte
			line, text, _ = bytes.Cut(text, []byte{'\n'})
			key, value, found := bytes.Cut(line, []byte{' '})
			if !found {
				continue
			}
			if n, ok := parseUint(bytes.TrimSpace(value)); ok && !yield(string(key), n) {
				return
			}
		}
	}
}

// parseUint reads a whole decimal number and nothing else.
func parseUint(text []byte) (uint64, bool) {
	if len(text) == 0 || len(text) > 20 {
		return 0, false
	}
	var n uint64
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		digit := uint64(c - '0')
		if n > (1<<64-1-digit)/10 {
			return 0, false
		}
		n = n*10 + digit
	}
	return n, true
}
