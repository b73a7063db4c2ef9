package refinterp

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/engine/program"
)

// A Fake is a kernel in which everything succeeds, unless the test says
// otherwise. It keeps a log of the calls and knows which descriptors are open,
// so that a test sees a leaked or a wrong one.
type Fake struct {
	// Answer, if not nil, is asked first; with ok false the Fake goes on.
	Answer func(c Call, mem *Memory) (result int64, ok bool)

	// FDs are the open descriptors, ascending. A new one gets the lowest free
	// number, as in Linux.
	FDs []int

	// Calls are the calls made so far, an execve included.
	Calls []Call
}

// A Call is a system call as it was made.
type Call struct {
	Nr   uint32
	Args [6]uint64
	Text string // name, arguments without the trailing zeros, strings quoted
}

// Call implements Kernel. A successful execve, execveat, exit or exit_group
// does not return.
func (f *Fake) Call(nr uint32, args [6]uint64, mem *Memory) (int64, bool) {
	c := Call{Nr: nr, Args: args, Text: text(nr, args, mem)}
	f.Calls = append(f.Calls, c)
	if f.Answer != nil {
		if result, ok := f.Answer(c, mem); ok {
			return result, result == 0 && neverReturns(nr)
		}
	}
	switch nr {
	case unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_SOCKET, unix.SYS_MEMFD_CREATE, unix.SYS_EVENTFD2, unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_GETFD:
		return f.open(0), false
	case unix.SYS_DUP:
		if !f.isOpen(args[0]) {
			return -int64(unix.EBADF), false
		}
		return f.open(0), false
	case unix.SYS_DUP3:
		if !f.isOpen(args[0]) || int32(args[1]) < 0 {
			return -int64(unix.EBADF), false
		}
		if !f.isOpen(args[1]) {
			return f.open(int(args[1])), false
		}
		return int64(args[1]), false
	case unix.SYS_CLOSE:
		i, open := slices.BinarySearch(f.FDs, int(int32(args[0])))
		if !open {
			return -int64(unix.EBADF), false
		}
		f.FDs = slices.Delete(f.FDs, i, i+1)
	case unix.SYS_CLOSE_RANGE:
		if args[2]&unix.CLOSE_RANGE_CLOEXEC == 0 {
			f.FDs = slices.DeleteFunc(f.FDs, func(fd int) bool {
				return uint32(fd) >= uint32(args[0]) && uint32(fd) <= uint32(args[1])
			})
		}
	case unix.SYS_GETPID, unix.SYS_GETTID:
		return 1, false
	case unix.SYS_READ, unix.SYS_WRITE, unix.SYS_SENDTO, unix.SYS_RECVFROM: // all of it
		return int64(args[2]), false
	}
	return 0, neverReturns(nr)
}

func neverReturns(nr uint32) bool {
	switch nr {
	case unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_EXIT, unix.SYS_EXIT_GROUP:
		return true
	}
	return false
}

func (f *Fake) isOpen(fd uint64) bool {
	_, open := slices.BinarySearch(f.FDs, int(int32(fd)))
	return open
}

// open adds the lowest free descriptor that is at least fd.
func (f *Fake) open(fd int) int64 {
	i, used := slices.BinarySearch(f.FDs, fd)
	for ; used; i, used = slices.BinarySearch(f.FDs, fd) {
		fd++
	}
	f.FDs = slices.Insert(f.FDs, i, fd)
	return int64(fd)
}

// Texts is the log of the calls.
func (f *Fake) Texts() []string {
	texts := make([]string, len(f.Calls))
	for i, c := range f.Calls {
		texts[i] = c.Text
	}
	return texts
}

func text(nr uint32, args [6]uint64, mem *Memory) string {
	n := len(args)
	for n > 0 && args[n-1] == 0 {
		n--
	}
	var s []string
	for _, a := range args[:n] {
		s = append(s, argText(a, mem))
	}
	o := program.Op{Nr: nr}
	return o.Name() + "(" + strings.Join(s, ", ") + ")"
}

// argText shows an address by the string there, or as & if there is none.
func argText(a uint64, mem *Memory) string {
	if _, ok := mem.Bytes(a, 0); !ok {
		return strconv.FormatInt(int64(a), 10)
	}
	s, _ := mem.CString(a)
	for _, c := range s {
		if !strconv.IsPrint(c) || c == '\uFFFD' {
			return "&"
		}
	}
	if s == "" {
		return "&"
	}
	return strconv.Quote(s)
}
