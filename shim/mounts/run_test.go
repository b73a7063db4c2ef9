package mounts

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/berth-runtime/berth/shim/reaper"
)

// run executes a program through the reaper, which is the only one to wait here.
func run(r *reaper.Reaper, name string, args ...string) bool {
	path, err := exec.LookPath(name)
	if err != nil {
		return false
	}
	c, err := r.Start(path, append([]string{name}, args...), &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}}, nil)
	return err == nil && c.Wait().Status == 0
}
