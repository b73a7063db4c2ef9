package sysnum

//go:generate go run ./gen -linux $LINUX -version $LINUX_VERSION

// An ID is the place of a name in the sorted list of all names.
type ID uint16

// A Table is the numbers of one architecture.
type Table struct {
	numbers string
	base    uint32
}

// The tables of the architectures. Byte order makes no difference to them, so that MIPS and MIPSEL
// share one.
var (
	X86         = Table{numbers: numbersX86}
	X86_64      = Table{numbers: numbersX86_64}
	X32         = Table{numbers: numbersX32, base: 0x40000000} // __X32_SYSCALL_BIT
	ARM         = Table{numbers: numbersARM}
	ARM64       = Table{numbers: numbersARM64}
	MIPSO32     = Table{numbers: numbersMIPSO32, base: 4000}
	MIPSN64     = Table{numbers: numbersMIPSN64, base: 5000}
	MIPSN32     = Table{numbers: numbersMIPSN32, base: 6000}
	PPC         = Table{numbers: numbersPPC}
	PPC64       = Table{numbers: numbersPPC64}
	S390        = Table{numbers: numbersS390}
	S390X       = Table{numbers: numbersS390X}
	PARISC      = Table{numbers: numbersPARISC}
	PARISC64    = Table{numbers: numbersPARISC64}
	RISCV64     = Table{numbers: numbersRISCV64}
	LOONGARCH64 = Table{numbers: numbersLOONGARCH64}
	M68K        = Table{numbers: numbersM68K}
	SH          = Table{numbers: numbersSH}
)

// ARMPrivate is the first number of ARM's own calls (cacheflush, set_tls and others), which are no
// part of the list that grows with each kernel. The table holds them from 0xf000 on, to stay within
// 16 bits.
const ARMPrivate = 0x0f0000

const (
	absent       = 0xffff
	armPrivateAt = 0xf000
)

func word(s string, i int) uint32 {
	return uint32(s[2*i]) | uint32(s[2*i+1])<<8
}

// Name is the name of an ID.
func Name(id ID) string {
	start := uint32(0)
	if id > 0 {
		start = word(ends, int(id)-1)
	}
	return names[start:word(ends, int(id))]
}

// Find looks a name up among the names of all architectures.
func Find(name string) (ID, bool) {
	lo, hi := 0, count
	for lo < hi {
		mid := (lo + hi) / 2
		if Name(ID(mid)) < name {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return ID(lo), lo < count && Name(ID(lo)) == name
}

// Number is the number of the call on the architecture, as seccomp_data.nr holds it: with the base
// of the ABI.
func (t *Table) Number(id ID) (uint32, bool) {
	nr := word(t.numbers, int(id))
	switch {
	case nr == absent:
		return 0, false
	case nr >= armPrivateAt:
		return nr - armPrivateAt + ARMPrivate, true
	}
	return t.base + nr, true
}

// NameOf is the name behind a number. It looks through the whole table: it is there to explain, not
// to filter.
func (t *Table) NameOf(nr uint32) (string, bool) {
	for id := range ID(count) {
		if n, ok := t.Number(id); ok && n == nr {
			return Name(id), true
		}
	}
	return "", false
}

// All gives each name of the architecture and its number, by name.
func (t *Table) All(yield func(name string, nr uint32) bool) {
	for id := range ID(count) {
		if nr, ok := t.Number(id); ok && !yield(Name(id), nr) {
			return
		}
	}
}

// Names gives each name of any architecture, by name.
func Names(yield func(name string) bool) {
	for id := range ID(count) {
		if !yield(Name(id)) {
			return
		}
	}
}

// NumberOf is Find and Number in one.
func (t *Table) NumberOf(name string) (uint32, bool) {
	id, ok := Find(name)
	if !ok {
		return 0, false
	}
	return t.Number(id)
}
