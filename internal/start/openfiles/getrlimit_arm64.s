#include "textflag.h"

// func getrlimit(limit *[2]uint64) int
TEXT ·getrlimit(SB), NOSPLIT|NOFRAME, $0-16
	MOVD	ZR, R0 // this process
	MOVD	$7, R1 // RLIMIT_NOFILE
	MOVD	ZR, R2 // no new limit
	MOVD	limit+0(FP), R3
	MOVD	$261, R8 // prlimit64
	SVC
	MOVD	R0, ret+8(FP)
	RET
