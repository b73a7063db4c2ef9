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

// signalled is the handler of EndBySignal. It is copied as well.
func signalled()

// signalledStart is the address of the first instruction of signalled.
func signalledStart() unsafe.Pointer

// endMark follows the last instruction of either inside its own text, so that its
// length does not depend on what the linker puts after it. The code has no such bytes
// elsewhere.
const endMark = "berth-interp-end"

var (
	interpreterCode = sync.OnceValue(func() []byte { return textAt(interpreterStart(), handlerStart-codeStart) })
	handlerCode     = sync.OnceValue(func() []byte { return textAt(signalledStart(), segmentStart-handlerStart) })
)

// textAt is the instructions at a place up to the mark. The text is always readable,
// and no image has room for more than the bytes searched.
func textAt(start unsafe.Pointer, room int) []byte {
	text := unsafe.Slice((*byte)(start), room+len(endMark))
	n := bytes.Index(text, []byte(endMark))
	if n < 0 {
		panic("program: the code does not fit its place in the image")
	}
	return text[:n:n]
}
