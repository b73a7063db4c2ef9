#include "textflag.h"

// The kernel comes here with the signal's number in DI and the address of the
// restorer on the stack. rt_sigreturn puts all registers back.
TEXT ·catch(SB), NOSPLIT|NOFRAME, $0
	PUSHQ	DI
	MOVQ	$39, AX // getpid
	SYSCALL
	CMPL	AX, ·caughtPID(SB)
	JNE	done
	MOVL	·caughtPipe(SB), DI
	MOVQ	SP, SI
	MOVQ	$1, DX
	MOVQ	$1, AX // write
	SYSCALL
done:
	POPQ	DI
	RET

TEXT ·restore(SB), NOSPLIT|NOFRAME, $0
	MOVQ	$15, AX // rt_sigreturn
	SYSCALL
	INT	$3

TEXT ·catchHandler(SB), NOSPLIT|NOFRAME, $0-8
	LEAQ	·catch(SB), AX
	MOVQ	AX, ret+0(FP)
	RET

TEXT ·catchRestorer(SB), NOSPLIT|NOFRAME, $0-8
	LEAQ	·restore(SB), AX
	MOVQ	AX, ret+0(FP)
	RET
