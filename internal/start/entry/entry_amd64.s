#include "textflag.h"

// The kernel comes here with argc, the arguments, 0, the environment, 0 and the
// auxiliary vector on the stack, where Go's own entry looks for them; registers hold
// nothing for it.
TEXT berth_entry(SB), NOSPLIT|NOFRAME, $0
	MOVB	$1, ·entered(SB)
	MOVL	$157, AX // prctl
	MOVL	$30, DI  // PR_GET_TIMERSLACK
	SYSCALL
	MOVQ	AX, ·slack(SB)
	MOVL	$157, AX
	MOVL	$29, DI // PR_SET_TIMERSLACK
	MOVL	$2000000, SI
	SYSCALL
	// All up to the environment's last goes down by one word, which leaves room
	// behind that.
	MOVQ	SP, SI
	SUBQ	$8, SP
	MOVQ	SP, DI
	MOVQ	(SI), CX
	ADDQ	$2, CX
	CLD
	REP;	MOVSQ
next:
	CMPQ	(SI), $0
	JEQ	last
	MOVSQ
	JMP	next
last:
	LEAQ	·oneProc(SB), AX
	MOVQ	AX, (DI)
	JMP	_rt0_amd64_linux(SB)
