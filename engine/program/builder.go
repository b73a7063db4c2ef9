package program

import (
	"encoding/binary"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// A Label is a place among the ops, made by NewLabel and fixed by Place.
type Label int32

// A BuildError says what is wrong with a Program under construction: always a
// mistake of the code that builds it, or an input that is far too large.
type BuildError struct {
	Op      int // index of the op, -1 when it is about the data
	Note    Note
	Problem string
}

func (e *BuildError) Error() string {
	if e.Note.Text != "" {
		return "build program: " + e.Note.Text + ": " + e.Problem
	}
	return "build program: " + e.Problem
}

// opsPerChunk lets most Programs fit the first chunk, of 128 KB: a common container
// has up to 750 ops, and Build copies several chunks into one list. What is not
// used of it is never touched, so it costs nothing. Chunks never move, so that an
// *Op stays good while more ops are added.
const opsPerChunk = 1024

// bufferSize holds the data of a common container, and its ops as Build lays them
// behind it, without a copy.
const bufferSize = 128 << 10

// A Builder collects the calls and the data of a Program.
//
// Mistakes are kept until Build, which returns the first one.
type Builder struct {
	full      [][]Op // chunks that are full
	ops       []Op   // the chunk being filled
	buf       []byte // the image: room for ELF header and interpreter, header, data
	regions   []region
	pointer   []uint32 // offsets of the words that hold addresses, ascending
	strings   map[string]Addr
	labels    []int32 // index of the op each label is placed at, -1 before
	note      Note
	fuel      uint32
	asks      []Expectation
	place     int     // how many of them come before what is added next
	beside    bool    // what is added next lies elsewhere than it is run
	stamped   int     // how many ops are to be stamped: see SendStamps
	stampAt   []int32 // where Build has put them
	endAction Addr    // of EndBySignal, once it is needed
	err       *BuildError
}

// NewBuilder starts an empty Program.
func NewBuilder() *Builder {
	return &Builder{
		ops:     make([]Op, 0, opsPerChunk),
		buf:     make([]byte, segmentStart+headerLen, bufferSize),
		regions: make([]region, 0, 128),
		strings: make(map[string]Addr, 64),
		fuel:    DefaultFuel,
	}
}

// A region is one piece of data, remembered for checks and for printing.
type region struct {
	off, size uint32
	kind      regionKind
}

type regionKind uint8

const (
	regionBytes regionKind = iota
	regionString
	regionZeroed
	regionCell
	regionWords
)

// add makes room for size bytes and remembers what they are.
func (b *Builder) add(kind regionKind, size int) Addr {
	if kind != regionString {
		b.buf = append(b.buf, zeros[:-len(b.buf)&7]...)
	}
	off := len(b.buf)
	if size > MaxImage-off {
		b.fail(nil, "the data is larger than an image may be")
		return Addr{}
	}
	b.regions = append(b.regions, region{uint32(off), uint32(size), kind})
	return Addr{uint32(off)}
}

var zeros [8]byte

// Bytes is a writable copy of p, aligned to eight bytes.
func (b *Builder) Bytes(p []byte) Addr {
	a := b.add(regionBytes, len(p))
	if a.off != 0 {
		b.buf = append(b.buf, p...)
	}
	return a
}

// CString is s with a NUL behind it. Equal strings share one place.
func (b *Builder) CString(s string) Addr {
	if a, ok := b.strings[s]; ok {
		return a
	}
	if strings.IndexByte(s, 0) >= 0 {
		b.fail(nil, "a string contains a NUL byte, and the kernel would only see the part before it")
		return Addr{}
	}
	a := b.add(regionString, len(s)+1)
	if a.off != 0 {
		b.buf = append(append(b.buf, s...), 0)
		b.strings[s] = a
	}
	return a
}

// Zeroed is n bytes of zeros, aligned to eight bytes.
func (b *Builder) Zeroed(n int) Addr { return b.zeroed(regionZeroed, n) }

// Cell is a new cell that holds zero.
func (b *Builder) Cell() Cell { return Cell{b.zeroed(regionCell, 8)} }

func (b *Builder) zeroed(kind regionKind, n int) Addr {
	if n < 0 {
		b.fail(nil, "a buffer of negative size")
		return Addr{}
	}
	a := b.add(kind, n)
	if a.off != 0 {
		b.buf = append(b.buf, make([]byte, n)...)
	}
	return a
}

// Words is a structure of eight-byte words, each a number or the address of a
// place: an argument vector, an iovec, a msghdr, a sock_fprog, a mount_attr.
func (b *Builder) Words(words ...Arg) Addr {
	a := b.add(regionWords, 8*len(words))
	if a.off == 0 {
		return a
	}
	for _, w := range words {
		switch w.kind {
		case argCell:
			b.fail(nil, "a structure holds the value of a cell; store the result there with IntoAddr")
		case argAddr:
			if !b.holds(Addr{uint32(w.value)}, 0) {
				b.fail(nil, "a structure points outside the data")
			}
			b.pointer = append(b.pointer, uint32(len(b.buf)))
		}
		b.buf = binary.LittleEndian.AppendUint64(b.buf, w.encoded())
	}
	return a
}

// Because sets the note of the calls that follow.
func (b *Builder) Because(pointer, text string) { b.note = Note{pointer, text} }

// Note is the note of the calls that follow.
func (b *Builder) Note() Note { return b.note }

// Call adds a system call.
func (b *Builder) Call(nr uintptr, args ...Arg) *Op {
	if len(b.ops) == cap(b.ops) {
		b.full = append(b.full, b.ops)
		b.ops = make([]Op, 0, opsPerChunk)
	}
	b.ops = append(b.ops, Op{Nr: uint32(nr), Note: b.note, b: b, nargs: uint8(min(len(args), maxArgs))})
	o := &b.ops[len(b.ops)-1]
	if len(args) > maxArgs {
		b.fail(o, "a system call has at most six arguments")
	}
	for i, a := range args[:o.nargs] {
		o.values[i], o.kinds[i] = a.value, a.kind
		if a.kind == argAddr && !b.holds(Addr{uint32(a.value)}, 0) {
			b.fail(o, "an argument points outside the data")
		}
		if a.kind == argCell && !b.holds(Addr{uint32(a.value)}, 8) {
			b.fail(o, "an argument is loaded from outside the data")
		}
	}
	return o
}

// Set stores an argument in a cell. A number that looks like an errno
// (-4095..-1) is treated as one, as the result of any call is.
func (b *Builder) Set(cell Cell, arg Arg) *Op { return b.Call(Set, arg).Into(cell) }

// Jump goes on at the label.
func (b *Builder) Jump(target Label) *Op {
	return b.Call(Set, Imm(0)).ZeroFails().Expect(target, unix.EPIPE)
}

// ForgetDone gives the pages of the ops that have been made back to the kernel:
// a Program that waits from here on holds some pages less. Going back to one of
// them reads it from the image again. The data stays.
func (b *Builder) ForgetDone() {
	next := b.NewLabel()
	// Not everything can be forgotten everywhere (memory locked by mlockall(2)),
	// and nothing depends on it.
	b.Call(unix.SYS_MADVISE, Imm(0), Int(0), Int(unix.MADV_DONTNEED)).ExpectAny(next).forget = true
	b.Place(next)
}

// isJump recognises what Jump makes.
func (o *Op) isJump() bool {
	return o.Nr == Set && o.arg(0) == Imm(0) && o.flags&flagZeroFails != 0 && o.errnos[0] == uint16(unix.EPIPE) && o.target != 0
}

// NewLabel makes a label that is not placed yet.
func (b *Builder) NewLabel() Label {
	b.labels = append(b.labels, -1)
	return Label(len(b.labels))
}

// Place puts the label in front of the op that is added next.
func (b *Builder) Place(l Label) {
	switch {
	case l <= 0 || int(l) > len(b.labels):
		b.fail(nil, "a label of another program is placed")
	case b.labels[l-1] >= 0:
		b.fail(nil, "a label is placed twice")
	default:
		b.labels[l-1] = int32(b.count())
	}
}

func (b *Builder) count() int { return len(b.full)*opsPerChunk + len(b.ops) }

// holds reports whether the data has n bytes at a.
func (b *Builder) holds(a Addr, n int) bool {
	return a.off >= segmentStart+headerLen && int(a.off)+n <= len(b.buf)
}

func (b *Builder) regionAt(a Addr) region { return findRegion(b.regions, a.off) }

// findRegion is the last region that begins at or before off.
func findRegion(regions []region, off uint32) region {
	i := sort.Search(len(regions), func(i int) bool { return regions[i].off > off })
	if i == 0 {
		return region{}
	}
	return regions[i-1]
}

// fail keeps the first mistake. o is the op it is about, which is the newest
// one in practice, or nil.
func (b *Builder) fail(o *Op, problem string) {
	if b.err != nil {
		return
	}
	b.err = &BuildError{Op: -1, Note: b.note, Problem: problem}
	if o != nil {
		b.err.Op, b.err.Note = b.count()-1, o.Note
	}
}
