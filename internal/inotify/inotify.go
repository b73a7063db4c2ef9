package inotify

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// An Event says what happened to a watched file, or to one in a watched directory.
type Event struct {
	Watch int32  // as unix.InotifyAddWatch returned it, -1 with IN_Q_OVERFLOW
	Mask  uint32 // unix.IN_MODIFY, …
	Name  string // of the file in a directory, else ""
}

// Events parses what one read returned: struct inotify_event of inotify(7), which is four
// numbers, the last of them the length of the name, and the name, padded with zeros.
func Events(buf []byte) []Event {
	var list []Event
	for len(buf) >= unix.SizeofInotifyEvent {
		size := unix.SizeofInotifyEvent + uint64(binary.NativeEndian.Uint32(buf[12:]))
		if size > uint64(len(buf)) {
			break
		}
		name, _, _ := bytes.Cut(buf[unix.SizeofInotifyEvent:size], []byte{0})
		list = append(list, Event{
			Watch: int32(binary.NativeEndian.Uint32(buf)),
			Mask:  binary.NativeEndian.Uint32(buf[4:]),
			Name:  string(name),
		})
		buf = buf[size:]
	}
	return list
}
