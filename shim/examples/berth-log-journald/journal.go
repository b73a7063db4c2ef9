package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// journal is a connection by journald's own protocol: one datagram an entry.
type journal struct {
	fd int
}

type field struct{ name, value string }

func dial(path string) (*journal, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("connect to the journal at %s: %w", path, err)
	}
	return &journal{fd}, nil
}

func (j *journal) close() { unix.Close(j.fd) }

// validName says whether journald takes a field from us: capital letters,
// digits and underscores, the first a letter, at most 64.
func validName(name string) bool {
	if name == "" || len(name) > 64 || name[0] < 'A' || name[0] > 'Z' {
		return false
	}
	for _, c := range []byte(name) {
		if c != '_' && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// send writes one entry.
func (j *journal) send(message string, priority int, fields []field) error {
	entry := appendField(nil, "MESSAGE", message)
	entry = appendField(entry, "PRIORITY", strconv.Itoa(priority))
	for _, f := range fields {
		entry = appendField(entry, f.name, f.value)
	}
	for {
		_, err := unix.Write(j.fd, entry)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EMSGSIZE, err == unix.ENOBUFS:
			return j.sendFile(entry)
		}
		return err
	}
}

// appendField writes NAME=value or, where the value has line ends, the name
// alone, the value's length in 64 little-endian bits, and the value.
func appendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	if !strings.Contains(value, "\n") {
		b = append(append(b, '='), value...)
		return append(b, '\n')
	}
	b = binary.LittleEndian.AppendUint64(append(b, '\n'), uint64(len(value)))
	return append(append(b, value...), '\n')
}

// sendFile sends an entry that is too long for a datagram, as a sealed memfd.
func (j *journal) sendFile(entry []byte) error {
	fd, err := unix.MemfdCreate("journal-entry", unix.MFD_ALLOW_SEALING|unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "journal-entry")
	defer f.Close()
	if _, err := f.Write(entry); err != nil {
		return err
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE | unix.F_SEAL_SEAL
	_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	return errors.Join(err, unix.Sendmsg(j.fd, nil, unix.UnixRights(fd), nil, 0))
}
