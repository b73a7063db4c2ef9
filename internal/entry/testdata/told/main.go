// Told prints what a program with the entry is told, and what it would pass on.
package main

import (
	"encoding/json"
	"os"
	"runtime"
	"syscall"

	"github.com/berth-runtime/berth/internal/entry"
)

func main() {
	slack, _, _ := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_GET_TIMERSLACK, 0, 0)
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
		"args": os.Args, "env": os.Environ(), "procs": runtime.GOMAXPROCS(0), "page": os.Getpagesize(),
		"slack": slack, "handed": entry.Slack(),
	})
}
