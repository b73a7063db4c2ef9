package sys

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// MemoryFile is a file with the given content, to be read from its beginning, that is nowhere on
// disk.
func MemoryFile(name string, content []byte) (*os.File, error) {
	fd, err := MemoryFD(name, content)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// MemoryFD is the descriptor of one, without a file of Go's around it.
func MemoryFD(name string, content []byte) (int, error) { return memoryFD(name, content, 0) }

// SealedFile is a MemoryFile that can no longer be changed by any holder.
func SealedFile(name string, content []byte) (*os.File, error) {
	fd, err := memoryFD(name, content, unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	const all = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, all); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("seal a memory file: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func memoryFD(name string, content []byte, flags int) (int, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|flags)
	if err != nil {
		return -1, fmt.Errorf("make a memory file: %w", err)
	}
	n, err := unix.Write(fd, content)
	if err == nil && n < len(content) {
		err = io.ErrShortWrite
	}
	if err == nil {
		_, err = unix.Seek(fd, 0, io.SeekStart)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("write a memory file: %w", err)
	}
	return fd, nil
}
