package program

import (
	"encoding/binary"
	"os"
)

// A Program is a finished list of system calls and the memory they use.
type Program struct {
	Ops []Op

	asks    []Expectation
	stamps  []int32 // the indices of the ops that are stamped
	image   []byte  // room for ELF header and interpreter, header, data, ops
	dataEnd uint32  // where the data ends and the ops begin
	regions []region
	pointer []uint32
}

// Build checks and freezes the Program. A failing op is reported on the
// descriptor reportFD of the process that will run it. The Builder must not be
// used any more.
func (b *Builder) Build(reportFD int) (*Program, error) {
	if reportFD < 0 {
		b.fail(nil, "the report descriptor is negative")
	}
	ops := b.ops
	if len(b.full) > 0 {
		ops = make([]Op, 0, b.count())
		for _, chunk := range append(b.full, b.ops) {
			ops = append(ops, chunk...)
		}
	}
	if b.stamped > 0 {
		ops = b.stamp(ops)
	}
	n := len(ops)
	if n > MaxOps || len(b.buf)+n*opLen > MaxImage {
		b.fail(nil, "the program is larger than an image may be")
	}
	if b.err != nil {
		return nil, b.err
	}
	p := &Program{Ops: ops, asks: b.asks, stamps: b.stampAt, regions: b.regions, pointer: b.pointer}

	b.buf = append(b.buf, zeros[:-len(b.buf)&7]...)
	p.dataEnd = uint32(len(b.buf))
	p.image = append(b.buf, make([]byte, n*opLen)...)
	for i := range p.Ops {
		o := &p.Ops[i]
		jump := int32(0)
		if o.target != 0 {
			if int(o.target) > len(b.labels) || b.labels[o.target-1] < 0 {
				return nil, &BuildError{i, o.Note, "an expected errno leads to a label that is not placed"}
			}
			jump = b.labels[o.target-1]
			// From here on the target is an index plus one: what printing needs.
			o.target = Label(jump + 1)
		}
		o.b = nil
		e := p.image[int(p.dataEnd)+i*opLen:]
		o.encode(e, uint32(jump))
		if o.forget {
			start, size := p.pagesOfOps(i)
			binary.LittleEndian.PutUint64(e[opArgs:], start)
			binary.LittleEndian.PutUint64(e[opArgs+8:], size)
		}
	}

	h := p.image[segmentStart:]
	binary.LittleEndian.PutUint64(h[hdrCount:], uint64(n))
	binary.LittleEndian.PutUint64(h[hdrOps:], Addr{p.dataEnd}.va())
	binary.LittleEndian.PutUint32(h[hdrFuel:], b.fuel)
	binary.LittleEndian.PutUint32(h[hdrReportFD:], uint32(reportFD))
	binary.LittleEndian.PutUint32(h[hdrRecord:], recordMagic)
	return p, nil
}

// pagesOfOps is the place and size of the whole pages that hold nothing but the
// first n ops.
func (p *Program) pagesOfOps(n int) (start, size uint64) {
	page := uint64(os.Getpagesize())
	first := Addr{p.dataEnd}.va()
	start = (first + page - 1) &^ (page - 1)
	end := (first + uint64(n*opLen)) &^ (page - 1)
	if end <= start {
		return start, 0
	}
	return start, end - start
}

func (o *Op) encode(e []byte, jump uint32) {
	e = e[:opLen]
	le := binary.LittleEndian
	le.PutUint32(e[opNr:], o.Nr)
	e[opFlags] = o.flags
	for i := range int(o.nargs) {
		a := o.arg(i)
		if a.kind == argCell {
			e[opCells] |= 1 << i
		}
		le.PutUint64(e[opArgs+8*i:], a.encoded())
	}
	if o.out.off != 0 {
		le.PutUint64(e[opOut:], o.out.va())
	}
	le.PutUint32(e[opJump:], jump)
	for i, errno := range o.errnos {
		le.PutUint16(e[opErrnos+2*i:], errno)
	}
}
