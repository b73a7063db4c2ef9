package ttrpc

import (
	"os"

	"golang.org/x/sys/unix"
)

func socketpair() (pair [2]*os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return pair, err
	}
	for i, fd := range fds {
		pair[i] = os.NewFile(uintptr(fd), "pair")
	}
	return pair, nil
}
