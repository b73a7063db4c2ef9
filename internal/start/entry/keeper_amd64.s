#include "textflag.h"
#include "go_asm.h"

// The keeper: see keeper.go. It stays in this text, on the stack that the kernel made, and makes
// nothing but system calls.
//
//	R12 the stack as the kernel left it    R13 the shared memory    R14 the pid of the program
//
// Below R12 there are 256 bytes: a siginfo_t at 0, a set of signals at 128, a timespec at 144.
TEXT berth_keeper(SB), NOSPLIT|NOFRAME, $0
	MOVQ	SP, R12
	SUBQ	$256, SP
	MOVL	$9, AX // mmap
	XORL	DI, DI
	MOVL	$4096, SI
	MOVL	$3, DX  // PROT_READ and PROT_WRITE
	MOVL	$1, R10 // MAP_SHARED
	MOVL	$const_MemoryFD, R8
	XORL	R9, R9
	SYSCALL
	MOVQ	AX, R13
	CMPQ	AX, $-4095
	JCC	alone
	MOVQ	$const_Magic, CX
	CMPQ	const_OffMagic(R13), CX
	JNE	alone
	// Nothing but SIGKILL ends it. What is blocked stays so over an execve.
	MOVQ	$-1, 128(SP)
	MOVL	$14, AX // rt_sigprocmask
	MOVL	$0, DI  // SIG_BLOCK
	LEAQ	128(SP), SI
	XORL	DX, DX
	MOVL	$8, R10
	SYSCALL
	MOVL	$157, AX // prctl
	MOVL	$36, DI  // PR_SET_CHILD_SUBREAPER
	MOVL	$1, SI
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	SYSCALL
	MOVL	$56, AX // clone
	MOVL	$0x411, DI // CLONE_FILES and SIGCHLD
	XORL	SI, SI
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	SYSCALL
	TESTQ	AX, AX
	JNE	parent
	// The program. It does not outlive its keeper.
	MOVL	$157, AX
	MOVL	$1, DI // PR_SET_PDEATHSIG
	MOVL	$9, SI
	SYSCALL
	MOVQ	$0, 128(SP)
	MOVL	$14, AX
	MOVL	$2, DI // SIG_SETMASK
	LEAQ	128(SP), SI
	XORL	DX, DX
	MOVL	$8, R10
	SYSCALL
	MOVB	$1, ·kept(SB)
	CMPL	const_OffCode(R13), $0
	JEQ	alone // it is the first
	MOVL	const_OffMaxFD(R13), AX
	MOVL	AX, ·maxFD(SB)
alone:
	MOVQ	R12, SP
	JMP	berth_begin(SB)

parent:
	MOVQ	AX, R14
	TESTQ	AX, AX
	JLT	leave

wait:
	MOVQ	$0x10800, AX // SIGCHLD and SIGUSR2
	MOVQ	AX, 128(SP)
	MOVL	$128, AX // rt_sigtimedwait
	LEAQ	128(SP), DI
	XORL	SI, SI
	XORL	DX, DX
	MOVL	$8, R10
	SYSCALL
	CMPQ	AX, $17
	JEQ	ended
	CMPL	const_OffRequest(R13), $1
	JNE	wait
	MOVL	$247, AX // waitid
	MOVL	const_OffIDType(R13), DI
	MOVL	const_OffID(R13), SI
	LEAQ	const_OffInfo(R13), DX
	MOVL	const_OffOptions(R13), R10
	XORL	R8, R8
	SYSCALL
	MOVL	AX, const_OffResult(R13)
	MOVL	$2, AX
	XCHGL	AX, const_OffRequest(R13)
	MOVL	$202, AX // futex
	LEAQ	const_OffRequest(R13), DI
	MOVL	$1, SI // FUTEX_WAKE
	MOVL	$1, DX
	SYSCALL
	JMP	wait

ended:
	MOVL	$0, 16(SP) // si_pid
	MOVL	$247, AX
	MOVL	$1, DI // P_PID
	MOVQ	R14, SI
	MOVQ	SP, DX
	MOVL	$5, R10 // WNOHANG and WEXITED
	XORL	R8, R8
	SYSCALL
	CMPL	16(SP), $0
	JNE	dead
	// Another child's end is the program's to look at.
	MOVL	$62, AX // kill
	MOVQ	R14, DI
	MOVL	$17, SI
	SYSCALL
	JMP	wait

dead:
	MOVL	8(SP), AX // si_code
	MOVL	AX, const_OffCode(R13)
	MOVL	24(SP), DI // si_status
	MOVL	DI, const_OffStatus(R13)
	CMPL	const_OffStage(R13), $const_StageTried
	JEQ	again
	CMPL	const_OffKeep(R13), $0
	JEQ	exit
	CMPL	AX, $1 // CLD_EXITED
	JNE	crash
	CMPL	DI, $const_Again
	JEQ	again
	CMPL	DI, $2 // of Go's runtime
	JNE	exit
crash:
	MOVL	$228, AX // clock_gettime
	MOVL	$1, DI   // CLOCK_MONOTONIC
	LEAQ	144(SP), SI
	SYSCALL
	MOVQ	144(SP), AX
	MOVL	const_OffDeaths(R13), CX
	MOVL	CX, DX
	ANDL	$7, DX
	MOVQ	AX, const_OffTimes(R13)(DX*8)
	INCL	const_OffDeaths(R13)
	SUBL	$(const_Deaths-1), CX
	JCS	again
	ANDL	$7, CX
	SUBQ	const_OffTimes(R13)(CX*8), AX
	CMPQ	AX, $60
	JGE	again
	MOVL	$1, AX // write
	MOVL	$2, DI
	MOVQ	·givenUp(SB), SI
	MOVQ	·givenUp+8(SB), DX
	SYSCALL
	MOVL	$1, DI
	JMP	exit

again:
	MOVL	$3, BX
keep:
	CMPL	BX, const_OffMaxFD(R13)
	JHI	execute
	MOVL	$72, AX // fcntl
	MOVL	BX, DI
	MOVL	$2, SI // F_SETFD
	XORL	DX, DX
	SYSCALL
	INCL	BX
	JMP	keep
execute:
	MOVQ	(R12), AX
	LEAQ	8(R12), SI
	LEAQ	16(R12)(AX*8), DX
	CMPL	const_OffStage(R13), $const_StageTried
	JEQ	back
	CMPL	const_OffStage(R13), $const_StageAsked
	JNE	own
	MOVL	$const_StageTried, const_OffStage(R13)
	LEAQ	const_OffProgram(R13), DI
	MOVL	$59, AX // execve
	SYSCALL
back:
	MOVL	$const_StageBack, const_OffStage(R13)
	LEAQ	const_OffUndo(R13), DI
	MOVL	$59, AX
	SYSCALL
own:
	MOVQ	·ownProgram(SB), DI
	MOVL	$59, AX
	SYSCALL

leave:
	MOVL	$1, DI
exit:
	MOVL	$231, AX // exit_group
	SYSCALL
	UNDEF
