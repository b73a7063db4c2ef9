package container

import (
	"errors"
	"os"
)

// IO is where a process's descriptors come from and go to.
type IO struct {
	Stdio [3]uintptr
	// Preserve are further descriptors, from 3 on.
	Preserve []uintptr
	// Listen is how many of them were passed by socket activation, of which the
	// process is told by LISTEN_FDS.
	Listen        int
	ConsoleSocket string
	// Console is given the master of the terminal instead of a socket.
	Console     func(master *os.File) error
	PidfdSocket string
	Refusals    Refusals // of the seccomp filter, or nil
	Learn       bool     // also have what the filter allows come to them, to be let through
}

// check refuses streams that do not fit what the config says of a terminal.
func (o *IO) check(terminal bool) error {
	switch {
	case terminal && o.ConsoleSocket == "" && o.Console == nil:
		return errors.New("cannot allocate a terminal: the process has \"terminal\": true, and nothing would receive it; pass --console-socket")
	case !terminal && o.ConsoleSocket != "":
		return errors.New("--console-socket is given, but the process has no \"terminal\": true")
	}
	return nil
}
