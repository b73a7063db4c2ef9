//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// settle waits until each process that the program has left has ended, executes a program that is
// not the engine's, or waits to be started. What ended is reaped here, as the init of a host does
// it: until then, the end of its pid namespace is held up.
func (t *tracer) settle() error {
	const patience = time.Minute
	for end := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		var waiting []string
		for _, pid := range children() {
			if !t.settled(pid) {
				waiting = append(waiting, strconv.Itoa(pid))
			}
		}
		if len(waiting) == 0 {
			break
		}
		if time.Now().After(end) {
			return fmt.Errorf("the program has left processes that do not end: %s", strings.Join(waiting, " "))
		}
	}
	for _, pid := range children() {
		if t.pids != nil {
			fmt.Fprintln(t.pids, pid)
		}
	}
	return nil
}

func (t *tracer) settled(pid int) bool {
	if got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); err != nil || got == pid {
		return true
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if t.follows && exe == t.program {
		return true // a daemon, or about to be: who runs this tool looks for it
	}
	if err != nil || exe == t.program {
		return false // on its way out, or to its execve
	}
	if !strings.HasPrefix(exe, "/memfd:berth") {
		return true
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", pid))
	return err == nil && strings.HasPrefix(string(text), strconv.Itoa(unix.SYS_ACCEPT4)+" ")
}

func children() (pids []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", unix.Gettid()))
	for _, word := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(word); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
