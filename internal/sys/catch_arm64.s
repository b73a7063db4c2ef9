#include "textflag.h"

// The kernel comes here with the signal's number in R0 and the address of the
// restorer in the link register. rt_sigreturn puts all registers back.
TEXT ·catch(SB), NOSPLIT|NOFRAME, $0
	SUB	$16, RSP
	MOVD	R0, (RSP)
	MOVD	$172, R8 // getpid
	SVC
	MOVW	·caughtPID(SB), R1
	CMPW	R0, R1
	BNE	done
	MOVW	·caughtPipe(SB), R0
	MOVD	RSP, R1
	MOVD	$1, R2
	MOVD	$64, R8 // write
	SVC
done:
	ADD	$16, RSP
	RET

TEXT ·restore(SB), NOSPLIT|NOFRAME, $0
	MOVD	$139, R8 // rt_sigreturn
	SVC
	UNDEF

TEXT ·catchHandler(SB), NOSPLIT|NOFRAME, $0-8
	MOVD	$·catch(SB), R0
	MOVD	R0, ret+0(FP)
	RET

TEXT ·catchRestorer(SB), NOSPLIT|NOFRAME, $0-8
	MOVD	$·restore(SB), R0
	MOVD	R0, ret+0(FP)
	RET
