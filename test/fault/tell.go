//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// listener is told of each call before it is made, and of each program that is not the engine's
// before its first instruction. Until it answers with a word, the one that is told of stands still,
// and so does each other one from its next stop on. When it has hung up, nobody is told any more.
//
// The words are "all", for the next call; PROCESS:NAME:N, for no call before that one; and
// "programs", for no call any more. The first one comes before anything is told.
type listener struct {
	fd    int
	until string // the call that is waited for, "" for any
	quiet bool   // no call is told of any more
}

// hears reports whether a call is to be told of.
func (l *listener) hears(c *call) bool {
	if l == nil || l.quiet {
		return false
	}
	if l.until != "" && l.until != fmt.Sprint(c.process, ":", c.name, ":", c.n) {
		return false
	}
	l.until = ""
	return true
}

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
	l := &listener{fd: fd}
	l.obey()
	return l, nil
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
	if unix.Sendto(l.fd, []byte(strings.Join(words, "\t")), unix.MSG_NOSIGNAL, nil) != nil {
		l.hangUp()
		return
	}
	l.obey()
}

// obey waits for a word.
func (l *listener) obey() {
	var answer [64]byte
	for {
		n, _, err := unix.Recvfrom(l.fd, answer[:], 0)
		switch word := string(answer[:max(n, 0)]); {
		case err == unix.EINTR:
			continue
		case err != nil || n == 0:
			l.hangUp()
		case word == "all":
		case word == "programs":
			l.quiet = true
		default:
			l.until = word
		}
		return
	}
}

func (l *listener) hangUp() {
	unix.Close(l.fd)
	l.fd, l.quiet = -1, true
}
