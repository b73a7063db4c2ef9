// Told prints what a program with the entry is told, and what it would pass on.
package main

import (
	"encoding/json"
	"os"
	"runtime"
	"syscall"

	"github.com/berth-runtime/berth/internal/start/entry"
)

// atInit is of the main thread, where package main is initialised, if isMain.
var (
	atInit = slack()
	isMain = syscall.Gettid() == syscall.Getpid()
	tasks  = threads()
)

func threads() int {
	list, _ := os.ReadDir("/proc/self/task")
	return len(list)
}

func slack() uintptr {
	n, _, _ := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_TIMERSLACK, 0, 0)
	return n
}

func main() {
	runtime.LockOSThread() // whichever that is by now
	entry.Restore()
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
		"args": os.Args, "env": os.Environ(), "procs": runtime.GOMAXPROCS(0), "page": os.Getpagesize(),
		"threads": tasks, "main": isMain, "slack": atInit, "restored": slack(), "handed": entry.Slack(),
	})
}
