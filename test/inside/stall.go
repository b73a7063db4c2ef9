package main

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// holdLease is lease FILE SAY: takes a write lease on a file, which holds up every open of it, and
// says so by the file SAY.
func holdLease(words []string) {
	signal.Ignore(unix.SIGIO) // by which it is asked for
	fd, err := unix.Open(words[0], unix.O_RDWR, 0)
	if err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
	}
	stall(err, words[1])
}

// mute FOLDER SAY: mounts a file system on a directory whose server, which descriptor 3 would be
// for, never answers.
func mute(words []string) {
	stall(unix.Mount("mute", words[0], "fuse", 0, "fd=3,rootmode=40000,user_id=0,group_id=0,allow_other"), words[1])
}

// stall says that what holds others up is in place, and stays.
func stall(err error, say string) {
	if err == nil {
		err = os.WriteFile(say, []byte("held\n"), 0o666)
	}
	if err != nil {
		fail(err.Error())
	}
	for {
		unix.Pause()
	}
}
