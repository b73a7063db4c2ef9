#include "textflag.h"

// As on amd64, but that the stack pointer must stay a multiple of 16: there is room
// for two, and both are the same.
TEXT berth_entry(SB), NOSPLIT|NOFRAME, $0
	MOVD	$1, R0
	MOVB	R0, ·entered(SB)
	MOVD	$167, R8 // prctl
	MOVD	$30, R0  // PR_GET_TIMERSLACK
	SVC
	MOVD	R0, ·slack(SB)
	MOVD	$167, R8
	MOVD	$29, R0 // PR_SET_TIMERSLACK
	MOVD	$2000000, R1
	SVC
	MOVD	RSP, R1
	SUB	$16, RSP, R2
	MOVD	R2, RSP
	MOVD	(R1), R3
	ADD	$2, R3
args:
	MOVD.P	8(R1), R4
	MOVD.P	R4, 8(R2)
	SUB	$1, R3
	CBNZ	R3, args
next:
	MOVD	(R1), R4
	CBZ	R4, last
	ADD	$8, R1
	MOVD.P	R4, 8(R2)
	B	next
last:
	MOVD	$·oneProc(SB), R4
	MOVD	R4, (R2)
	MOVD	R4, 8(R2)
	B	_rt0_arm64_linux(SB)
