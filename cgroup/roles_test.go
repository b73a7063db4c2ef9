package cgroup

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// roles are what a test starts inside of a group: the test program again, with
// the role in its environment.
var roles = map[string]func(argument string){
	"sleep": func(string) {
		for {
			syscall.Pause()
		}
	},
	"count": func(string) { // uses the processor
		for {
			os.Getppid()
		}
	},
	"enter": func(string) { // starts a process inside of the group of descriptor 3
		cmd := exec.Command("/bin/echo", "ran")
		cmd.Stdout = os.Stdout
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: 3}
		if cmd.Run() != nil {
			os.Exit(1)
		}
	},
	"forks": func(string) { // makes children faster than one can list them
		for range 300 {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), roleVariable+"=sleep")
			cmd.Stdin, _ = os.Open(os.DevNull)
			cmd.Start()
			cmd.Stdin.(*os.File).Close()
		}
	},
}

// playRole is the other side of start: it waits for its standard input to end.
func playRole(role string) {
	var b [1]byte
	os.Stdin.Read(b[:])
	name, argument, _ := strings.Cut(role, ":")
	play, known := roles[name]
	if !known {
		os.Exit(99)
	}
	play(argument)
	os.Exit(0)
}
