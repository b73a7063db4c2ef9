#include "textflag.h"

// The kernel comes here with argc, the arguments, 0, the environment, 0 and the
// auxiliary vector on the stack, where Go's own entry looks for them; registers hold
// nothing for it.
TEXT berth_entry(SB), NOSPLIT|NOFRAME, $0
	// Is the first word of the environment that of a keeper? (The stack above it is readable for
	// more than the 16 bytes that are compared.)
	MOVQ	(SP), AX
	MOVQ	16(SP)(AX*8), AX
	TESTQ	AX, AX
	JEQ	begin
	MOVQ	$0x454b5f4854524542, CX // BERTH_KE
	CMPQ	(AX), CX
	JNE	begin
	CMPL	8(AX), $0x52455045 // EPER
	JNE	begin
	JMP	berth_keeper(SB)
begin:
	JMP	berth_begin(SB)

TEXT berth_begin(SB), NOSPLIT|NOFRAME, $0
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
