package cbpf

import "fmt"

// A FaultError is a program that the kernel would refuse, and where.
type FaultError struct {
	At      int
	Problem string
}

func (e *FaultError) Error() string {
	return fmt.Sprintf("instruction %d %s", e.At, e.Problem)
}

// Check says whether the kernel takes the program as a seccomp filter: the rules of
// bpf_check_classic() (net/core/filter.c) that can apply here, and of seccomp_check_filter()
// (kernel/seccomp.c), which allows fewer operations.
func Check(program []Instruction) error {
	if len(program) == 0 || len(program) > MaxInstructions {
		return &FaultError{0, fmt.Sprintf("is one of %d; a program has 1 to %d", len(program), MaxInstructions)}
	}
	for i, ins := range program {
		left := uint64(len(program) - i - 1)
		switch ins.Code {
		case LoadWord:
			if ins.K%4 != 0 || ins.K >= DataSize {
				return &FaultError{i, fmt.Sprintf("loads from offset %d, which is not a word of struct seccomp_data", ins.K)}
			}
		case And, Return, ReturnA:
		case Jump:
			if uint64(ins.K) >= left {
				return &FaultError{i, "jumps past the end"}
			}
		case JumpEqual, JumpGreater, JumpGreaterEq, JumpSet:
			if uint64(ins.Jt) >= left || uint64(ins.Jf) >= left {
				return &FaultError{i, "jumps past the end"}
			}
		default:
			return &FaultError{i, fmt.Sprintf("has the operation %#x, which filters here never use", ins.Code)}
		}
	}
	if last := program[len(program)-1].Code; last != Return && last != ReturnA {
		return &FaultError{len(program) - 1, "is the last and no return"}
	}
	return nil
}
