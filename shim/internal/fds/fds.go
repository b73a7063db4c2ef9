package fds

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Table are the files that go from one program to the next.
type Table struct {
	files   map[uint32]*os.File
	numbers map[uint32]bool
}

// New makes an empty table.
func New() *Table {
	return &Table{files: make(map[uint32]*os.File), numbers: make(map[uint32]bool)}
}

// Number notes a file, and gives its descriptor's number: 0 of none, and of one that is closed. (0
// is a standard stream, and never a file that is handed on.) os.File.Fd would set it to blocking,
// for the file as it is open in every process.
func (t *Table) Number(f *os.File) (n uint32) {
	if f == nil {
		return 0
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return 0
	}
	if raw.Control(func(fd uintptr) { n = uint32(fd) }) != nil {
		return 0
	}
	t.numbers[n] = true
	return n
}

// File gives the file behind a number: nil for 0. From then on it is closed on an execve, as all
// files are.
func (t *Table) File(n uint32, name string) (*os.File, error) {
	if n == 0 {
		return nil, nil
	}
	if f := t.files[n]; f != nil {
		return f, nil
	}
	if n < 3 {
		return nil, fmt.Errorf("%s: descriptor %d is a standard stream", name, n)
	}
	if _, err := unix.FcntlInt(uintptr(n), unix.F_GETFD, 0); err != nil {
		return nil, fmt.Errorf("%s: descriptor %d: %w", name, n, err)
	}
	unix.CloseOnExec(int(n))
	f := os.NewFile(uintptr(n), name)
	t.files[n], t.numbers[n] = f, true
	return f, nil
}

// Has says whether a number is in the table.
func (t *Table) Has(n uint32) bool { return t.numbers[n] }

// Max is the greatest number.
func (t *Table) Max() (most uint32) {
	for n := range t.numbers {
		most = max(most, n)
	}
	return most
}

// Keep has all descriptors of the table survive an execve, or not.
func (t *Table) Keep(keep bool) error {
	flag := unix.FD_CLOEXEC
	if keep {
		flag = 0
	}
	var errs []error
	for n := range t.numbers {
		if _, err := unix.FcntlInt(uintptr(n), unix.F_SETFD, flag); err != nil {
			errs = append(errs, fmt.Errorf("descriptor %d: %w", n, err))
		}
	}
	return errors.Join(errs...)
}

// Dup gives another descriptor of a file.
func Dup(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	if controlErr := raw.Control(func(n uintptr) { fd, err = unix.FcntlInt(n, unix.F_DUPFD_CLOEXEC, 0) }); controlErr != nil {
		return -1, controlErr
	}
	return fd, os.NewSyscallError("fcntl F_DUPFD_CLOEXEC", err)
}
