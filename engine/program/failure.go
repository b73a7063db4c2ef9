package program

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// A Failure is what a Program that could not go on reports: which op failed,
// and with which errno.
//
// After it has sent the report the process waits until its end of the
// descriptor can be read (a byte, or the end of the file), so that the reader
// of the report can still look at it in /proc. Then it exits with status 1.
type Failure struct {
	Index int
	Errno unix.Errno
	Nr    uint32 // of the call, for who does not have the Program
}

// ParseFailure reads a failure record; it says no to anything else.
func ParseFailure(record []byte) (Failure, bool) {
	le := binary.LittleEndian
	if len(record) != RecordLen || le.Uint32(record) != recordMagic {
		return Failure{}, false
	}
	index, errno := le.Uint32(record[4:]), le.Uint32(record[8:])
	if index >= MaxOps || errno == 0 || errno > maxErrno {
		return Failure{}, false
	}
	return Failure{Index: int(index), Errno: unix.Errno(errno), Nr: le.Uint32(record[12:])}, true
}
