#include "go_asm.h"
#include "textflag.h"

// The interpreter: see layout.go for what it reads, and refinterp for the same
// in Go. It is copied into an image, so it refers to nothing but the image, and
// it starts as a process does: no stack frame, no Go runtime, no g.
//
// Registers that live across a system call, which changes only AX, CX and R11:
//
//	R15 header    R12 index of the op    R13 fuel left    BX the op
TEXT ·interpreter(SB), NOSPLIT|NOFRAME, $0-0
	MOVL $const_headerVA, R15
	XORL R12, R12
	MOVL const_hdrFuel(R15), R13

next:
	CMPQ R12, const_hdrCount(R15)
	JAE  end
	LEAQ (R12)(R12*4), BX
	SHLQ $4, BX
	ADDQ const_hdrOps(R15), BX

	// The arguments; those marked in the cells mask are loaded.
	MOVBLZX const_opCells(BX), CX
	MOVQ (const_opArgs+0)(BX), DI
	MOVQ (const_opArgs+8)(BX), SI
	MOVQ (const_opArgs+16)(BX), DX
	MOVQ (const_opArgs+24)(BX), R10
	MOVQ (const_opArgs+32)(BX), R8
	MOVQ (const_opArgs+40)(BX), R9
	SHRL $1, CX
	JCC  arg1
	MOVQ (DI), DI
arg1:
	SHRL $1, CX
	JCC  arg2
	MOVQ (SI), SI
arg2:
	SHRL $1, CX
	JCC  arg3
	MOVQ (DX), DX
arg3:
	SHRL $1, CX
	JCC  arg4
	MOVQ (R10), R10
arg4:
	SHRL $1, CX
	JCC  arg5
	MOVQ (R8), R8
arg5:
	SHRL $1, CX
	JCC  call
	MOVQ (R9), R9

call:
	MOVL (const_opNr)(BX), CX
	MOVQ DI, AX
	CMPL CX, $-1 // Set
	JEQ  result
	MOVL CX, AX
	SYSCALL

result:
	MOVBLZX const_opFlags(BX), CX
	TESTL $const_flagZeroFails, CX
	JEQ   check
	TESTQ AX, AX
	JNE   check
	MOVQ  $-const_epipe, AX

check:
	CMPQ AX, $-const_maxErrno // unsigned: -4095..-1 are the largest numbers
	JCC  error
	MOVQ const_opOut(BX), CX
	INCL R12
	TESTQ CX, CX
	JEQ  next
	MOVQ AX, (CX)
	JMP  next

error:
	NEGL  AX
	TESTL $const_flagRetry, CX
	JEQ   expected
	CMPL  AX, $const_eagain
	JNE   expected
	SUBL  $1, R13
	JCS   exhausted
	JMP   next

expected:
	TESTL $const_flagAnyErrno, CX
	JNE   jump
	CMPW  AX, (const_opErrnos+0)(BX)
	JEQ   jump
	CMPW  AX, (const_opErrnos+2)(BX)
	JEQ   jump
	CMPW  AX, (const_opErrnos+4)(BX)
	JEQ   jump
	CMPW  AX, (const_opErrnos+6)(BX)
	JEQ   jump
	CMPW  AX, (const_opErrnos+8)(BX)
	JEQ   jump
	CMPW  AX, (const_opErrnos+10)(BX)
	JNE   fail

jump:
	SUBL $1, R13
	JCS  exhausted
	TESTL $const_flagKeepErrno, CX
	JEQ  away
	MOVQ const_opOut(BX), CX
	NEGQ AX
	MOVQ AX, (CX)
away:
	MOVL const_opJump(BX), R12
	JMP  next

exhausted:
	MOVL $const_eloop, AX

fail:
	MOVL R12, (const_hdrRecord+4)(R15)
	MOVL AX, (const_hdrRecord+8)(R15)
	MOVL (const_opNr)(BX), CX
	MOVL CX, (const_hdrRecord+12)(R15)
	MOVL const_hdrReportFD(R15), DI
	LEAQ const_hdrRecord(R15), SI
	MOVL $const_RecordLen, DX
	MOVL $const_msgNoSignal, R10
	XORL R8, R8
	XORL R9, R9
	MOVL $const_sysSendto, AX
	SYSCALL
	MOVL const_hdrReportFD(R15), DI
	LEAQ const_hdrWait(R15), SI
	MOVL $1, DX
	MOVL $const_sysRead, AX
	SYSCALL
	MOVL $1, DI
	JMP  exit

end:
	XORL DI, DI
exit:
	MOVL $const_sysExitGroup, AX
	SYSCALL
	UNDEF // a seccomp filter refused it: SIGILL ends even the init of a pid namespace

	BYTE $'b'; BYTE $'e'; BYTE $'r'; BYTE $'t'; BYTE $'h'; BYTE $'-'
	BYTE $'i'; BYTE $'n'; BYTE $'t'; BYTE $'e'; BYTE $'r'; BYTE $'p'
	BYTE $'-'; BYTE $'e'; BYTE $'n'; BYTE $'d'

// The handler of EndBySignal: the kernel calls it with the signal's number.
TEXT ·signalled(SB), NOSPLIT|NOFRAME, $0-0
	ADDL $128, DI
	MOVL $const_sysExitGroup, AX
	SYSCALL
	UNDEF

	BYTE $'b'; BYTE $'e'; BYTE $'r'; BYTE $'t'; BYTE $'h'; BYTE $'-'
	BYTE $'i'; BYTE $'n'; BYTE $'t'; BYTE $'e'; BYTE $'r'; BYTE $'p'
	BYTE $'-'; BYTE $'e'; BYTE $'n'; BYTE $'d'

// func interpreterStart() unsafe.Pointer
TEXT ·interpreterStart(SB), NOSPLIT, $0-8
	LEAQ ·interpreter(SB), AX
	MOVQ AX, ret+0(FP)
	RET

// func signalledStart() unsafe.Pointer
TEXT ·signalledStart(SB), NOSPLIT, $0-8
	LEAQ ·signalled(SB), AX
	MOVQ AX, ret+0(FP)
	RET
