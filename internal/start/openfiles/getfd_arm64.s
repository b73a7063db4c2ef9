#include "textflag.h"

// func getfd(fd int) int
TEXT ·getfd(SB), NOSPLIT|NOFRAME, $0-16
	MOVD	fd+0(FP), R0
	MOVD	$1, R1 // F_GETFD
	MOVD	$25, R8 // fcntl
	SVC
	MOVD	R0, ret+8(FP)
	RET
