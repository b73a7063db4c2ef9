package program

import (
	"encoding/binary"
	"errors"
	"runtime"
)

// Native says that a Program can be executed on this machine: that there is an interpreter for it.
const Native = elfMachine != 0

// ErrNoInterpreter is returned by Image on a machine that has no interpreter.
var ErrNoInterpreter = errors.New("no container init for GOARCH=" + runtime.GOARCH + " (there is one for amd64 and arm64)")

// Image is the Program as a static ELF executable for this machine. It shares
// the Program's memory and must not be changed.
//
// The file may be executed from a memfd: it opens nothing and needs no stack
// beyond what the kernel sets up.
func (p *Program) Image() ([]byte, error) {
	if !Native {
		return nil, ErrNoInterpreter
	}
	putELF(p.image, elfMachine, interpreterCode(), handlerCode())
	return p.image, nil
}

// Segment is the read-write part of the image (header, data, ops) as it is
// loaded at SegmentAddress: everything but the interpreter.
func (p *Program) Segment() []byte { return p.image[segmentStart:] }

// SegmentAddress is where the Segment is in the process.
const SegmentAddress = headerVA

// putELF writes the ELF header, the program headers, the interpreter and the
// handler in front of the segment. See elf(5).
func putELF(image []byte, machine uint16, code, handler []byte) {
	const (
		headerSize, segmentSize = 64, 56

		ptLoad, ptGNUStack = 1, 0x6474e551
		pfX, pfW, pfR      = 1, 2, 4
	)
	le := binary.LittleEndian
	h := image[:headerSize]
	copy(h, "\x7fELF\x02\x01\x01") // 64-bit, little endian, version 1
	le.PutUint16(h[16:], 2)        // e_type: ET_EXEC
	le.PutUint16(h[18:], machine)
	le.PutUint32(h[20:], 1)                   // e_version
	le.PutUint64(h[24:], imageBase+codeStart) // e_entry
	le.PutUint64(h[32:], headerSize)          // e_phoff
	le.PutUint16(h[52:], headerSize)          // e_ehsize
	le.PutUint16(h[54:], segmentSize)         // e_phentsize
	le.PutUint16(h[56:], 3)                   // e_phnum
	copy(image[codeStart:handlerStart], code)
	copy(image[handlerStart:segmentStart], handler)

	rest := image[headerSize:]
	segment := func(typ, flags uint32, off, addr, size, align int) {
		s := rest[:segmentSize]
		rest = rest[segmentSize:]
		le.PutUint32(s[0:], typ)
		le.PutUint32(s[4:], flags)
		le.PutUint64(s[8:], uint64(off))
		le.PutUint64(s[16:], uint64(addr))
		le.PutUint64(s[24:], uint64(addr))
		le.PutUint64(s[32:], uint64(size))
		le.PutUint64(s[40:], uint64(size))
		le.PutUint64(s[48:], uint64(align))
	}
	segment(ptLoad, pfR|pfX, 0, imageBase, segmentStart, segmentAlign)
	segment(ptLoad, pfR|pfW, segmentStart, headerVA, len(image)-segmentStart, segmentAlign)
	// Without this header the kernel makes the stack executable.
	segment(ptGNUStack, pfR|pfW, 0, 0, 0, 16)
}
