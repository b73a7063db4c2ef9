#include "go_asm.h"
#include "textflag.h"

// func vfork(b *vforkBlock) int
//
// A system call changes R0 only. The child has the same registers, and writes to no
// stack: it is the one that its parent returns on.
TEXT ·vfork(SB), NOSPLIT|NOFRAME, $0-16
	MOVD	b+0(FP), R19

	MOVD	$const_sigSetmask, R0
	ADD	$vforkBlock_all, R19, R1
	ADD	$vforkBlock_old, R19, R2
	MOVD	$8, R3
	MOVD	$const_sysRtSigprocmask, R8
	SVC

	ADD	$vforkBlock_clone, R19, R0
	MOVD	$cloneArgs__size, R1
	MOVD	$const_sysClone3, R8
	SVC
	CBZ	R0, child
	MOVD	R0, R20

	MOVD	$const_sigSetmask, R0
	ADD	$vforkBlock_old, R19, R1
	MOVD	ZR, R2
	MOVD	$8, R3
	MOVD	$const_sysRtSigprocmask, R8
	SVC
	MOVD	R20, ret+8(FP)
	RET

child:
	JMP	·vforkChild(SB)

// func vforkChild(b *vforkBlock)
//
// The child comes here with the argument where vfork's was.
TEXT ·vforkChild(SB), NOSPLIT|NOFRAME, $0-8
	MOVD	b+0(FP), R19
	MOVD	vforkBlock_calls(R19), R21
next:
	MOVD	vforkCall_nr(R21), R8
	MOVD	vforkCall_a1(R21), R0
	MOVD	vforkCall_a2(R21), R1
	MOVD	vforkCall_a3(R21), R2
	MOVD	vforkCall_a4(R21), R3
	SVC
	CMN	$const_maxErrno, R0 // -4095..-1 are the largest numbers
	BCS	fail
	ADD	$vforkCall__size, R21
	JMP	next

fail:
	MOVD	R0, vforkBlock_failed(R19)
	MOVD	vforkCall_nr(R21), R1
	MOVD	R1, vforkBlock_at(R19)
	MOVD	$127, R0
	MOVD	$const_sysExitGroup, R8
	SVC
	UNDEF
