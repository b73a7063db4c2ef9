#include "go_asm.h"
#include "textflag.h"

// func vfork(b *vforkBlock) int
//
// A system call changes AX, CX and R11 only. The child has the same registers, and
// writes to no stack: it is the one that its parent returns on.
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ	b+0(FP), R12

	MOVL	$const_sigSetmask, DI
	LEAQ	vforkBlock_all(R12), SI
	LEAQ	vforkBlock_old(R12), DX
	MOVL	$8, R10
	MOVL	$const_sysRtSigprocmask, AX
	SYSCALL

	LEAQ	vforkBlock_clone(R12), DI
	MOVL	$cloneArgs__size, SI
	MOVL	$const_sysClone3, AX
	SYSCALL
	TESTQ	AX, AX
	JEQ	child
	MOVQ	AX, R13

	MOVL	$const_sigSetmask, DI
	LEAQ	vforkBlock_old(R12), SI
	XORL	DX, DX
	MOVL	$8, R10
	MOVL	$const_sysRtSigprocmask, AX
	SYSCALL
	MOVQ	R13, ret+8(FP)
	RET

child:
	JMP	·vforkChild(SB)

// func vforkChild(b *vforkBlock)
//
// The child comes here with the argument where vfork's was.
TEXT ·vforkChild(SB), NOSPLIT|NOFRAME, $0-8
	MOVQ	b+0(FP), R12
	MOVQ	vforkBlock_calls(R12), BX
next:
	MOVQ	vforkCall_nr(BX), AX
	MOVQ	vforkCall_a1(BX), DI
	MOVQ	vforkCall_a2(BX), SI
	MOVQ	vforkCall_a3(BX), DX
	MOVQ	vforkCall_a4(BX), R10
	SYSCALL
	CMPQ	AX, $-const_maxErrno // unsigned: -4095..-1 are the largest numbers
	JCC	fail
	ADDQ	$vforkCall__size, BX
	JMP	next

fail:
	MOVQ	AX, vforkBlock_failed(R12)
	MOVQ	vforkCall_nr(BX), CX
	MOVQ	CX, vforkBlock_at(R12)
	MOVL	$127, DI
	MOVL	$const_sysExitGroup, AX
	SYSCALL
	UNDEF
