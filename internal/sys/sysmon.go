package sys

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// watchEvery is how much later than asked for the watching thread may be woken.
const watchEvery = "2000000" // nanoseconds

// WatchLess lets Go's watching thread (sysmon in runtime/proc.go) look less often. As
// long as some thread is in a system call, such as the wait for another process, it
// sleeps for 20 µs at a time, to take the turn from that thread if another goroutine
// wants it; each time costs 5 µs and a switch, in a run of a container a seventh of
// all CPU time. Its sleeps get a slack of two milliseconds.
//
// It is for commands that do one thing after the other: where goroutines are more
// than CPUs, one may have to wait that long for its turn. Who may not change it
// (without CAP_SYS_NICE) goes on as before.
func WatchLess() {
	tid, ok := firstThread()
	if !ok {
		return
	}
	// prctl(2) has it for the calling thread only. /proc/TID is no name that a listing
	// has, but there for each thread.
	fd, err := unix.Open("/proc/"+tid+"/timerslack_ns", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	_, _ = unix.Write(fd, []byte(watchEvery))
	unix.Close(fd)
}

// firstThread is the one that was made first, before any code but the runtime's ran:
// the watching one. They are listed in that order.
func firstThread() (tid string, ok bool) {
	dir, err := unix.Open("/proc/self/task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(dir)
	var entries [256]byte
	n, err := unix.ReadDirent(dir, entries[:])
	if err != nil {
		return "", false
	}
	_, _, names := unix.ParseDirent(entries[:n], 2, nil)
	if len(names) < 2 || names[0] != strconv.Itoa(unix.Getpid()) {
		return "", false // a /proc of another pid namespace
	}
	return names[1], true
}
