package device

import "encoding/binary"

// insn is one eBPF instruction (struct bpf_insn in linux/bpf.h).
type insn struct {
	op       uint8
	dst, src uint8
	off      int16
	imm      int32
}

// The few opcodes that a device program needs; the numbers are class, size or
// source, and operation or'ed as in linux/bpf_common.h and linux/bpf.h.
const (
	opLoadWord  = 0x61 // dst = *(u32 *)(src + off)
	opMove32    = 0xbc // dst = src
	opMoveImm   = 0xb7 // dst = imm
	opXorImm32  = 0xa4 // dst ^= imm
	opOr32      = 0x4c // dst |= src
	opAndImm32  = 0x54 // dst &= imm
	opShiftImm  = 0x74 // dst >>= imm, 32 bits
	opJumpNE32  = 0x56 // if dst != imm goto +off, 32 bits (Linux 5.1)
	opJumpSet32 = 0x46 // if dst & imm goto +off
	opJump      = 0x05 // goto +off
	opExit      = 0x95
)

const insnSize = 8

// nibbleSwapped says whether the two register numbers change places in their
// byte, which they do on machines whose bit fields run from the top.
var nibbleSwapped = binary.NativeEndian.Uint16([]byte{0, 1}) == 1

// encode gives the instructions in the byte order of this machine, which is
// how the kernel takes them.
func encode(program []insn) []byte {
	b := make([]byte, 0, len(program)*insnSize)
	for _, i := range program {
		regs := i.src<<4 | i.dst
		if nibbleSwapped {
			regs = i.dst<<4 | i.src
		}
		b = append(b, i.op, regs)
		b = binary.NativeEndian.AppendUint16(b, uint16(i.off))
		b = binary.NativeEndian.AppendUint32(b, uint32(i.imm))
	}
	return b
}
