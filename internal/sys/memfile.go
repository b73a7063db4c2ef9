package sys

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// MemoryFile is a file with the given content, to be read from its beginning, that is nowhere on disk.
func MemoryFile(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = f.Write(content); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("write a memory file: %w", err)
	}
	return f, nil
}
