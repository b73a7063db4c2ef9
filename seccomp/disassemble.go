package seccomp

import (
	"fmt"

	"github.com/berth-runtime/berth/seccomp/internal/cbpf"
)

func (f *Filter) disassemble(at int, ins Instruction) string {
	jump := func(test string) string {
		return fmt.Sprintf("if %s goto %d else %d", test, at+1+int(ins.Jt), at+1+int(ins.Jf))
	}
	switch ins.Code {
	case cbpf.LoadWord:
		return "load " + f.field(ins.K)
	case cbpf.And:
		return fmt.Sprintf("and %#x", ins.K)
	case cbpf.Jump:
		return fmt.Sprintf("goto %d", at+1+int(ins.K))
	case cbpf.JumpEqual:
		return jump(fmt.Sprintf("== %#x", ins.K))
	case cbpf.JumpGreater:
		return jump(fmt.Sprintf("> %#x", ins.K))
	case cbpf.JumpGreaterEq:
		return jump(fmt.Sprintf(">= %#x", ins.K))
	case cbpf.JumpSet:
		return jump(fmt.Sprintf("& %#x", ins.K))
	case cbpf.Return:
		return "return " + describe(ins.K)
	}
	return fmt.Sprintf("%#x %d %d %#x", ins.Code, ins.Jt, ins.Jf, ins.K)
}

// field names a word of struct seccomp_data.
func (f *Filter) field(offset uint32) string {
	switch {
	case offset == cbpf.OffsetNumber:
		return "number"
	case offset == cbpf.OffsetArch:
		return "arch"
	case offset < cbpf.OffsetArgs:
		return fmt.Sprintf("word at %d", offset)
	}
	half := "low"
	if offset%8 == 4 != f.bigEndian {
		half = "high"
	}
	return fmt.Sprintf("arg%d %s", (offset-cbpf.OffsetArgs)/8, half)
}
