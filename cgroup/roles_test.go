package cgroup

import (
	"os"
	"os/exec"
)

// playMore holds the roles that single tests need.
func playMore(name, argument string) {
	switch name {
	case "count": // uses the processor
		for i := 0; ; i++ {
			os.Getppid()
		}
	case "forks": // makes children faster than one can list them
		for range 300 {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), roleVariable+"=sleep")
			cmd.Stdin, _ = os.Open(os.DevNull)
			cmd.Start()
			cmd.Stdin.(*os.File).Close()
		}
	default:
		os.Exit(99)
	}
}
