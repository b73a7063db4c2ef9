package main

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

func init() {
	if len(os.Args) > 1 && os.Args[1] == "headless" {
		runtime.LockOSThread() // main stays on the thread that the process began with
	}
}

// headless lets the main thread end while another one lives on: for /proc the process is a zombie
// then.
func headless() {
	ready := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		close(ready)
		for {
			_, _ = unix.Poll(nil, -1)
		}
	}()
	<-ready
	fmt.Println("headless")
	unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0) // of the thread, where exit_group(2) is of the process
}
