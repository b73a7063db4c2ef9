package program

// The image is two segments cut from one file without padding:
//
//	offset 0            ELF header, program headers, interpreter,
//	                    signal handler                             R-X
//	offset segmentStart header, data, ops                          RW-
//
// Both are at fixed addresses (ET_EXEC), so that the interpreter needs no
// relocation and an Addr is final as soon as it is handed out. The second
// segment is one 64 KiB page further up, so that the same image also loads on
// an arm64 kernel with 64 KiB pages. The interpreters include these constants
// through go_asm.h.
const (
	imageBase    = 0x400000 // far above any vm.mmap_min_addr
	segmentAlign = 0x10000
	codeStart    = 256  // after the ELF header and three program headers
	handlerStart = 992  // leaves 736 bytes to the interpreter
	segmentStart = 1024 // leaves 32 bytes to the handler of EndBySignal

	// dataBase is what turns a file offset into an address in the RW segment.
	dataBase  = imageBase + segmentAlign
	headerVA  = dataBase + segmentStart
	headerLen = 48

	// The header, read by the interpreter.
	hdrCount    = 0  // uint64: number of ops
	hdrOps      = 8  // uint64: address of the first op
	hdrFuel     = 16 // uint32: jumps that may be taken
	hdrReportFD = 20 // uint32: where a failure is reported
	hdrRecord   = 24 // 16 bytes: the failure record, magic filled in
	hdrWait     = 40 // the byte that the wait after a failure reads
)

// An encoded op. All numbers are little endian, as both machines are.
const (
	opNr     = 0  // uint32: system call number, or Set
	opFlags  = 4  // uint8
	opCells  = 5  // uint8: bit i says that argument i is the address of its value
	opArgs   = 8  // six uint64
	opOut    = 56 // uint64: address for the result, 0 discards it
	opJump   = 64 // uint32: index of the op to go on with after an expected errno
	opErrnos = 68 // six uint16: the expected errnos; 0 is not an errno
	opLen    = 80
)

const (
	flagZeroFails = 1 << iota // a result of 0 counts as -EPIPE
	flagAnyErrno              // every errno is expected
	flagRetry                 // EAGAIN makes the same call again, as a jump does
	flagKeepErrno             // an expected errno is stored as the result, too
)

const (
	maxArgs   = 6
	maxErrnos = 6
	maxErrno  = 4095 // the kernel's MAX_ERRNO: results in -4095..-1 are errors

	// MaxOps and MaxImage bound what Build accepts. The kernel's own limit on
	// the arguments and environment of an execve is 6 MiB.
	MaxOps   = 1 << 16
	MaxImage = 16 << 20

	// DefaultFuel is how many jumps a Program may take: a retry or a serving loop ends some day,
	// whatever it is fed.
	DefaultFuel = 1 << 20
)

// RecordLen is the size of a failure record.
const (
	RecordLen   = 16
	recordMagic = 0x42725468
)
