#include "go_asm.h"
#include "textflag.h"

// The interpreter: see interp_amd64.s, of which this is the translation.
//
// A system call changes only R0. Registers that live across it:
//
//	R19 header    R20 index of the op    R21 fuel left    R22 the op
TEXT ·interpreter(SB), NOSPLIT|NOFRAME, $0-0
	MOVD $const_headerVA, R19
	MOVD $0, R20
	MOVWU const_hdrFuel(R19), R21

next:
	MOVD const_hdrCount(R19), R9
	CMP  R9, R20
	BHS  end
	MOVD const_hdrOps(R19), R9
	ADD  R20<<2, R20, R22
	ADD  R22<<4, R9, R22

	// The arguments; those marked in the cells mask are loaded.
	MOVBU const_opCells(R22), R9
	MOVD (const_opArgs+0)(R22), R0
	MOVD (const_opArgs+8)(R22), R1
	MOVD (const_opArgs+16)(R22), R2
	MOVD (const_opArgs+24)(R22), R3
	MOVD (const_opArgs+32)(R22), R4
	MOVD (const_opArgs+40)(R22), R5
	TBZ  $0, R9, arg1
	MOVD (R0), R0
arg1:
	TBZ  $1, R9, arg2
	MOVD (R1), R1
arg2:
	TBZ  $2, R9, arg3
	MOVD (R2), R2
arg3:
	TBZ  $3, R9, arg4
	MOVD (R3), R3
arg4:
	TBZ  $4, R9, arg5
	MOVD (R4), R4
arg5:
	TBZ  $5, R9, call
	MOVD (R5), R5

call:
	MOVWU const_opNr(R22), R8
	ADDW $1, R8, R9
	CBZW R9, result // Set
	SVC  $0

result:
	MOVBU const_opFlags(R22), R9
	TBZ  $0, R9, check // flagZeroFails
	CBNZ R0, check
	MOVD $-const_epipe, R0

check:
	// -4095..-1 are the errnos: 0..4094 after a negation and a decrement.
	NEG  R0, R10
	SUB  $1, R10, R11
	CMP  $const_maxErrno, R11
	BLO  error
	MOVD const_opOut(R22), R11
	ADD  $1, R20
	CBZ  R11, next
	MOVD R0, (R11)
	B    next

error:
	TBZ  $2, R9, expected // flagRetry
	CMPW $const_eagain, R10
	BNE  expected
	CBZ  R21, exhausted
	SUB  $1, R21
	B    next

expected:
	TBNZ $1, R9, jump // flagAnyErrno
	MOVHU (const_opErrnos+0)(R22), R11
	CMPW R11, R10
	BEQ  jump
	MOVHU (const_opErrnos+2)(R22), R11
	CMPW R11, R10
	BEQ  jump
	MOVHU (const_opErrnos+4)(R22), R11
	CMPW R11, R10
	BEQ  jump
	MOVHU (const_opErrnos+6)(R22), R11
	CMPW R11, R10
	BEQ  jump
	MOVHU (const_opErrnos+8)(R22), R11
	CMPW R11, R10
	BEQ  jump
	MOVHU (const_opErrnos+10)(R22), R11
	CMPW R11, R10
	BNE  fail

jump:
	CBZ  R21, exhausted
	SUB  $1, R21
	TBZ  $3, R9, away // flagKeepErrno
	MOVD const_opOut(R22), R11
	MOVD R0, (R11)
away:
	MOVWU const_opJump(R22), R20
	B    next

exhausted:
	MOVD $const_eloop, R10

fail:
	MOVW R20, (const_hdrRecord+4)(R19)
	MOVW R10, (const_hdrRecord+8)(R19)
	MOVWU const_opNr(R22), R11
	MOVW R11, (const_hdrRecord+12)(R19)
	MOVWU const_hdrReportFD(R19), R0
	ADD  $const_hdrRecord, R19, R1
	MOVD $const_RecordLen, R2
	MOVD $const_msgNoSignal, R3
	MOVD $0, R4
	MOVD $0, R5
	MOVD $const_sysSendto, R8
	SVC  $0
	MOVWU const_hdrReportFD(R19), R0
	ADD  $const_hdrWait, R19, R1
	MOVD $1, R2
	MOVD $const_sysRead, R8
	SVC  $0
	MOVD $1, R0
	B    exit

end:
	MOVD $0, R0
exit:
	MOVD $const_sysExitGroup, R8
	SVC  $0
	UNDEF // a seccomp filter refused it: SIGILL ends even the init of a pid namespace

	// "berth-interp-end"
	WORD $0x74726562
	WORD $0x6e692d68
	WORD $0x70726574
	WORD $0x646e652d

// The handler of EndBySignal: the kernel calls it with the signal's number.
TEXT ·signalled(SB), NOSPLIT|NOFRAME, $0-0
	ADD  $128, R0
	MOVD $const_sysExitGroup, R8
	SVC  $0
	UNDEF

	// "berth-interp-end"
	WORD $0x74726562
	WORD $0x6e692d68
	WORD $0x70726574
	WORD $0x646e652d

// func interpreterStart() unsafe.Pointer
TEXT ·interpreterStart(SB), NOSPLIT, $0-8
	MOVD $·interpreter(SB), R0
	MOVD R0, ret+0(FP)
	RET

// func signalledStart() unsafe.Pointer
TEXT ·signalledStart(SB), NOSPLIT, $0-8
	MOVD $·signalled(SB), R0
	MOVD R0, ret+0(FP)
	RET
