#include "textflag.h"

// func getrlimit(limit *[2]uint64) int
TEXT ·getrlimit(SB), NOSPLIT|NOFRAME, $0-16
	XORL	DI, DI // this process
	MOVL	$7, SI // RLIMIT_NOFILE
	XORL	DX, DX // no new limit
	MOVQ	limit+0(FP), R10
	MOVL	$302, AX // prlimit64
	SYSCALL
	MOVQ	AX, ret+8(FP)
	RET
