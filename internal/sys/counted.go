package sys

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// CountedSize is what a Counted takes.
const CountedSize = 128

// Counted is what is read from a socket, or written to it, in shared memory, of which is known at
// any instant how much it is, also when the process that does it is killed: recvmmsg(2) and
// sendmmsg(2) store the number of bytes in memory before they return to the caller. It stays with
// the memory, not with the process.
type Counted struct {
	total uint64 // done before the call that is under way
	armed uint64 // total and one, if message is of a call from there on
	// struct mmsghdr
	message struct {
		header unix.Msghdr
		length uint32
		_      uint32
	}
	iov unix.Iovec
}

// CountedAt is the Counted at the beginning of a piece of memory, which has zeros there before.
func CountedAt(b []byte) *Counted { return (*Counted)(unsafe.Pointer(&b[:CountedSize][0])) }

// Recover takes into account what a process was killed before it could. It must be called once,
// before anything else, by the process that comes after.
func (c *Counted) Recover() {
	if c.armed == c.total+1 {
		c.total += uint64(c.message.length)
	}
	c.armed = 0
}

// Total is how many bytes were transferred since Reset.
func (c *Counted) Total() int { return int(c.total) }

// Reset begins another transfer, of which so much has been done.
func (c *Counted) Reset(total int) { c.armed = 0; c.total = uint64(total) }

// Receive reads what there is, into p, which must be in the memory that c is in: Go's collector
// sees neither of them in c. It is 0 bytes at the end of the stream.
func (c *Counted) Receive(fd uintptr, p []byte) (int, error) {
	return c.transfer(unix.SYS_RECVMMSG, fd, p, unix.MSG_DONTWAIT)
}

// Send writes of p, which must be there too, what there is room for.
func (c *Counted) Send(fd uintptr, p []byte) (int, error) {
	return c.transfer(unix.SYS_SENDMMSG, fd, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

func (c *Counted) transfer(call, fd uintptr, p []byte, flags uintptr) (int, error) {
	c.message.length = 0
	c.iov.Base = &p[0]
	c.iov.SetLen(len(p))
	c.message.header = unix.Msghdr{Iov: &c.iov, Iovlen: 1}
	c.armed = c.total + 1
	for {
		_, _, errno := unix.Syscall6(call, fd, uintptr(unsafe.Pointer(&c.message)), 1, flags, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		if errno != 0 {
			return 0, errno
		}
		n := c.message.length
		c.total += uint64(n)
		return int(n), nil
	}
}

// Word is a number in shared memory that several processes look at.
func Word(b []byte) *uint32 { return (*uint32)(unsafe.Pointer(&b[:4][0])) }

// LongWord is one of eight bytes.
func LongWord(b []byte) *uint64 { return (*uint64)(unsafe.Pointer(&b[:8][0])) }

// FutexWait waits as long as a word in shared memory has a value, or for a moment.
func FutexWait(word *uint32, value uint32) {
	const wait = 0 // FUTEX_WAIT
	limit := unix.Timespec{Nsec: 100e6}
	unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), wait, uintptr(value), uintptr(unsafe.Pointer(&limit)), 0, 0)
}
