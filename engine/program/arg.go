package program

// An Addr is a place in a Program's data. The zero Addr is no place.
type Addr struct{ off uint32 }

// Plus is the place that many bytes further on.
func (a Addr) Plus(bytes int) Addr {
	if a.off == 0 {
		return a
	}
	off := int64(a.off) + int64(bytes)
	if off <= 0 || off > MaxImage {
		return Addr{}
	}
	return Addr{uint32(off)}
}

// Arg is the address of the place, as an argument of a call or a word of a
// structure.
func (a Addr) Arg() Arg { return Arg{value: uint64(a.off), kind: argAddr} }

// Cell looks at the eight bytes at the place as a Cell.
func (a Addr) Cell() Cell { return Cell{a} }

func (a Addr) va() uint64 { return dataBase + uint64(a.off) }

// A Cell is an eight-byte place that holds a number: the result of a call,
// which later calls take as an argument.
type Cell struct{ addr Addr }

// Value is what the Cell holds when the call is made.
func (c Cell) Value() Arg { return Arg{value: uint64(c.addr.off), kind: argCell} }

// Addr is where the Cell is.
func (c Cell) Addr() Addr { return c.addr }

type argKind uint8

const (
	argImm argKind = iota // printed as a hexadecimal number
	argInt                // printed as a signed decimal number
	argAddr
	argCell
)

// An Arg is an argument of a call, or a word of a structure.
type Arg struct {
	value uint64 // the number, or the offset of the place
	kind  argKind
}

// Imm is a number known now that is best read in hexadecimal: flags, masks.
func Imm(v uint64) Arg { return Arg{value: v, kind: argImm} }

// Int is a number known now that is best read in decimal: descriptors, ids,
// sizes, AT_FDCWD.
func Int(v int64) Arg { return Arg{value: uint64(v), kind: argInt} }

// encoded is the argument as the interpreter finds it.
func (a Arg) encoded() uint64 {
	if a.kind >= argAddr {
		return dataBase + a.value
	}
	return a.value
}
