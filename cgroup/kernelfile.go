package cgroup

import (
	"golang.org/x/sys/unix"
)

// The kernel's files are opened relative to a directory descriptor, read or
// written in one call where that is enough, and closed: a write must reach the
// kernel whole, and nothing is asked that the open itself answers.

func openAt(dirfd int, name string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(dirfd, name, flags|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

func readFD(fd int, buf []byte) (int, error) {
	for {
		n, err := unix.Read(fd, buf)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// readWhole reads a file to its end into buf, or into something larger if it
// does not fit, and returns what was read.
func readWhole(dirfd int, name string, buf []byte) ([]byte, error) {
	fd, err := openAt(dirfd, name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return readRest(fd, buf)
}

func readRest(fd int, buf []byte) ([]byte, error) {
	n := 0
	for {
		if n == len(buf) {
			buf = append(buf, make([]byte, len(buf)+1)...)
		}
		got, err := readFD(fd, buf[n:])
		if err != nil {
			return nil, err
		}
		if got == 0 {
			return buf[:n], nil
		}
		n += got
	}
}

// readRecord reads a file that the kernel gives as one record (every cgroup
// file but the lists of processes): a read that leaves room in buf has seen
// its end, which saves the second read.
func readRecord(dirfd int, name string, buf []byte) ([]byte, error) {
	fd, err := openAt(dirfd, name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	n, err := readFD(fd, buf)
	if err != nil || n < len(buf) {
		return buf[:max(n, 0)], err
	}
	rest, err := readRest(fd, make([]byte, len(buf)))
	return append(buf[:n:n], rest...), err
}

// writeFile gives the kernel a value, in one write.
func writeFile(dirfd int, name, value string) error {
	fd, err := openAt(dirfd, name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return writeFD(fd, value)
}

func writeFD(fd int, value string) error {
	for {
		if _, err := unix.Write(fd, []byte(value)); err != unix.EINTR {
			return err
		}
	}
}
