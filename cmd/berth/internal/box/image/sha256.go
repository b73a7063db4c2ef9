package image

import (
	"encoding/binary"
	"math/bits"
)

// A sum is a SHA-256 (FIPS 180-4) of what is written to it. The library's would be set up at each
// start of each command, with self-tests of what else is in its module.
type sum struct {
	state [8]uint32
	block [64]byte
	n     int // bytes in the block
	total uint64
}

func newSum() *sum {
	return &sum{state: [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}}
}

// rounds are the fractions of the cube roots of the first 64 primes.
var rounds = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

func (s *sum) Write(p []byte) (int, error) {
	whole := len(p)
	s.total += uint64(whole)
	if s.n > 0 {
		n := copy(s.block[s.n:], p)
		s.n += n
		p = p[n:]
		if s.n < len(s.block) {
			return whole, nil
		}
		s.add(s.block[:])
		s.n = 0
	}
	for len(p) >= len(s.block) {
		s.add(p[:len(s.block)])
		p = p[len(s.block):]
	}
	s.n = copy(s.block[:], p)
	return whole, nil
}

func (s *sum) add(block []byte) {
	var w [64]uint32
	for i := range 16 {
		w[i] = binary.BigEndian.Uint32(block[4*i:])
	}
	for i := 16; i < 64; i++ {
		x, y := w[i-15], w[i-2]
		w[i] = w[i-16] + w[i-7] +
			(bits.RotateLeft32(x, -7) ^ bits.RotateLeft32(x, -18) ^ x>>3) +
			(bits.RotateLeft32(y, -17) ^ bits.RotateLeft32(y, -19) ^ y>>10)
	}
	a, b, c, d, e, f, g, h := s.state[0], s.state[1], s.state[2], s.state[3], s.state[4], s.state[5], s.state[6], s.state[7]
	for i := 0; i < 64; i += 8 {
		d, h = round(a, b, c, d, e, f, g, h, rounds[i]+w[i])
		c, g = round(h, a, b, c, d, e, f, g, rounds[i+1]+w[i+1])
		b, f = round(g, h, a, b, c, d, e, f, rounds[i+2]+w[i+2])
		a, e = round(f, g, h, a, b, c, d, e, rounds[i+3]+w[i+3])
		h, d = round(e, f, g, h, a, b, c, d, rounds[i+4]+w[i+4])
		g, c = round(d, e, f, g, h, a, b, c, rounds[i+5]+w[i+5])
		f, b = round(c, d, e, f, g, h, a, b, rounds[i+6]+w[i+6])
		e, a = round(b, c, d, e, f, g, h, a, rounds[i+7]+w[i+7])
	}
	for i, v := range [8]uint32{a, b, c, d, e, f, g, h} {
		s.state[i] += v
	}
}

// round is one of the 64. Instead of moving the eight words it changes two of them.
func round(a, b, c, d, e, f, g, h, t uint32) (uint32, uint32) {
	t += h + (bits.RotateLeft32(e, -6) ^ bits.RotateLeft32(e, -11) ^ bits.RotateLeft32(e, -25)) + (g ^ e&(f^g))
	return d + t, t + (bits.RotateLeft32(a, -2) ^ bits.RotateLeft32(a, -13) ^ bits.RotateLeft32(a, -22)) + (a&b | c&(a|b))
}

// digest is of what was written, in the form that images have. Nothing can be written afterwards.
func (s *sum) digest() string {
	length := s.total * 8
	end := make([]byte, 1+(119-int(s.total%64))%64+8)
	end[0] = 0x80
	binary.BigEndian.PutUint64(end[len(end)-8:], length)
	_, _ = s.Write(end)
	const digits = "0123456789abcdef"
	text := []byte("sha256:")
	for _, v := range s.state {
		for shift := 28; shift >= 0; shift -= 4 {
			text = append(text, digits[v>>shift&15])
		}
	}
	return string(text)
}

func digestOf(data []byte) string {
	s := newSum()
	_, _ = s.Write(data)
	return s.digest()
}
