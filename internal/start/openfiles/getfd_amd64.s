#include "textflag.h"

// func getfd(fd int) int
TEXT ·getfd(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ	fd+0(FP), DI
	MOVL	$1, SI // F_GETFD
	MOVL	$72, AX // fcntl
	SYSCALL
	MOVQ	AX, ret+8(FP)
	RET
