package ociexec

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/namespace"
)

// Settle waits for the commands that a dead shim has left at work on a bundle,
// and kills those that take longer than the limit.
func Settle(bundle string, limit time.Duration) {
	logs, _ := filepath.Glob(filepath.Join(bundle, logPattern+"*"))
	if len(logs) == 0 {
		return
	}
	end := time.Now().Add(limit)
	for _, fd := range commandsOf(logs) {
		if !ended(fd, time.Until(end)) {
			unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			ended(fd, time.Second)
		}
		unix.Close(fd)
	}
	for _, log := range logs {
		os.Remove(log)
	}
}

// commandsOf finds the processes with one of the logs on their command line.
func commandsOf(logs []string) (pidfds []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || !namespace.Beside(pid) || !names(pid, logs) {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		if !names(pid, logs) { // looked at again, now that its pid cannot be reused
			unix.Close(fd)
			continue
		}
		pidfds = append(pidfds, fd)
	}
	return pidfds
}

func names(pid int, logs []string) bool {
	cmdline, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return false
	}
	for _, log := range logs {
		if bytes.Contains(cmdline, []byte("\x00"+log+"\x00")) {
			return true
		}
	}
	return false
}

func ended(pidfd int, limit time.Duration) bool {
	end := time.Now().Add(limit)
	for {
		left := max(time.Until(end), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if err != unix.EINTR {
			return n > 0
		}
	}
}
