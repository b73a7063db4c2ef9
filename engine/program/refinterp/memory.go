package refinterp

import (
	"bytes"
	"encoding/binary"
)

// Memory is the segment of a Program by the addresses it is loaded at.
type Memory struct {
	base  uint64
	bytes []byte
}

// Bytes is the n bytes at addr, writable; false if any is outside.
func (m *Memory) Bytes(addr uint64, n int) ([]byte, bool) {
	if n < 0 || addr < m.base || addr-m.base > uint64(len(m.bytes)) || uint64(n) > uint64(len(m.bytes))-(addr-m.base) {
		return nil, false
	}
	return m.bytes[addr-m.base:][:n:n], true
}

// CString is the string at addr up to its NUL.
func (m *Memory) CString(addr uint64) (string, bool) {
	if _, ok := m.Bytes(addr, 0); !ok {
		return "", false
	}
	b := m.bytes[addr-m.base:]
	n := bytes.IndexByte(b, 0)
	if n < 0 {
		return "", false
	}
	return string(b[:n]), true
}

// CStrings is the strings of the NULL-terminated vector at addr: the argument
// vector or the environment of an execve.
func (m *Memory) CStrings(addr uint64) ([]string, bool) {
	var s []string
	for ; ; addr += 8 {
		p, ok := m.Uint64(addr)
		if !ok || p == 0 {
			return s, ok
		}
		v, ok := m.CString(p)
		if !ok {
			return nil, false
		}
		s = append(s, v)
	}
}

// Uint64 is the word at addr.
func (m *Memory) Uint64(addr uint64) (uint64, bool) {
	b, ok := m.Bytes(addr, 8)
	if !ok {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}

// PutUint64 writes the word at addr.
func (m *Memory) PutUint64(addr, v uint64) bool {
	b, ok := m.Bytes(addr, 8)
	if ok {
		binary.LittleEndian.PutUint64(b, v)
	}
	return ok
}
