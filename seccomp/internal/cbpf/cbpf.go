package cbpf

// An Instruction is the kernel's struct sock_filter.
type Instruction struct {
	Code uint16
	Jt   uint8 // how many instructions to skip when the comparison is true
	Jf   uint8 // and when it is false
	K    uint32
}

// The operations of a seccomp filter, class and mode in one. The values are those of
// <linux/bpf_common.h>.
const (
	LoadWord      = 0x20 // BPF_LD|BPF_W|BPF_ABS: A = the 32-bit word at K of struct seccomp_data
	And           = 0x54 // BPF_ALU|BPF_AND|BPF_K: A &= K
	Jump          = 0x05 // BPF_JMP|BPF_JA: skip K instructions
	JumpEqual     = 0x15 // BPF_JMP|BPF_JEQ|BPF_K: A == K
	JumpGreater   = 0x25 // BPF_JMP|BPF_JGT|BPF_K: A > K
	JumpGreaterEq = 0x35 // BPF_JMP|BPF_JGE|BPF_K: A >= K
	JumpSet       = 0x45 // BPF_JMP|BPF_JSET|BPF_K: A & K != 0
	Return        = 0x06 // BPF_RET|BPF_K
	ReturnA       = 0x16 // BPF_RET|BPF_A
)

// MaxInstructions is BPF_MAXINSNS, the longest program that seccomp(2) takes.
const MaxInstructions = 4096

// Where the fields of struct seccomp_data stand.
const (
	OffsetNumber = 0
	OffsetArch   = 4
	OffsetIP     = 8
	OffsetArgs   = 16
	DataSize     = 64
)

// Data is the kernel's struct seccomp_data: what a filter can see of a system call.
type Data struct {
	Number uint32
	Arch   uint32
	IP     uint64
	Args   [6]uint64
}

// word is the 32-bit word at an offset, in the byte order of the machine that makes the call.
func (d *Data) word(offset uint32, bigEndian bool) uint32 {
	var v uint64
	switch {
	case offset == OffsetNumber:
		return d.Number
	case offset == OffsetArch:
		return d.Arch
	case offset < OffsetArgs:
		v = d.IP
	default:
		v = d.Args[(offset-OffsetArgs)/8]
	}
	if high := offset%8 == 4; high != bigEndian {
		return uint32(v >> 32)
	}
	return uint32(v)
}
