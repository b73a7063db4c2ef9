//go:build amd64 || arm64

//lint:file-ignore U1000 the interpreters in assembly use the constants, by way of go_asm.h

package program

import (
	"bytes"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls the interpreter makes itself, for go_asm.h.
const (
	sysSendto    = unix.SYS_SENDTO
	sysRead      = unix.SYS_READ
	sysExitGroup = unix.SYS_EXIT_GROUP

	msgNoSignal = unix.MSG_NOSIGNAL // a parent that is gone must not become a SIGPIPE
	eagain      = unix.EAGAIN
	eloop       = unix.ELOOP
	epipe       = unix.EPIPE
)

// interpreter is the entry point of an image. It is never called in this
// process: its instructions are copied.
func interpreter()

// interpreterStart is the address of the first instruction of interpreter.
func interpreterStart() unsafe.Pointer

// endMark follows the last instruction of interpreter inside its own text,
// so that its length does not depend on what the linker puts after it. The
// code has no such bytes elsewhere.
const endMark = "berth-interp-end"

// interpreterCode is the interpreter's instructions. The text is always
// readable, and no image has room for more than the bytes searched.
var interpreterCode = sync.OnceValue(func() []byte {
	text := unsafe.Slice((*byte)(interpreterStart()), segmentStart-codeStart+len(endMark))
	n := bytes.Index(text, []byte(endMark))
	if n < 0 {
		panic("program: the interpreter does not fit its place in the image")
	}
	return text[:n:n]
})
