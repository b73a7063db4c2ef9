//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// listener is told of each call before it is made, and of each program that is not the engine's
// before its first instruction. Until it answers with a byte, the one that is told of stands still,
// and so does each other one from its next stop on. When it has hung up, nobody is told any more.
type listener struct{ fd int }

// listen connects to a listener's socket; no path is nobody.
func listen(path string) (*listener, error) {
	if path == "" {
		return nil, nil
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return nil, &os.PathError{Op: "connect to", Path: path, Err: err}
	}
	return &listener{fd}, nil
}

// tell says one line of fields, and waits for the answer.
func (l *listener) tell(fields ...any) {
	if l == nil || l.fd < 0 {
		return
	}
	words := make([]string, len(fields))
	for i, f := range fields {
		words[i] = strings.ReplaceAll(fmt.Sprint(f), "\t", " ")
	}
	var answer [1]byte
	err := unix.Sendto(l.fd, []byte(strings.Join(words, "\t")), unix.MSG_NOSIGNAL, nil)
	for err == nil {
		var n int
		n, _, err = unix.Recvfrom(l.fd, answer[:], 0)
		if err == unix.EINTR {
			err = nil
			continue
		}
		if n > 0 {
			return
		}
		break
	}
	unix.Close(l.fd)
	l.fd = -1
}
