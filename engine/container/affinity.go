package container

import (
	"fmt"
	"runtime"

	"github.com/berth-runtime/berth/engine/launch"
	"golang.org/x/sys/unix"
)

// start clones the child, on the CPUs that it is to run on before it is in the
// container's cgroup. They may be none of that cgroup's, so they can't be set by
// the child, which a unified hierarchy's clone puts there at once: it is our own
// thread that moves, and the child inherits its place.
func (e *execer) start() (*launch.Child, error) {
	if len(e.process.InitialAffinity) == 0 {
		return e.spawn.start(e.compile)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var old, initial unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return nil, fmt.Errorf("look at our CPU affinity: %w", err)
	}
	for word, bits := range e.process.InitialAffinity {
		for bit := range 64 {
			if bits&(1<<bit) != 0 {
				initial.Set(64*word + bit)
			}
		}
	}
	if err := unix.SchedSetaffinity(0, &initial); err != nil {
		return nil, fmt.Errorf("process: /execCPUAffinity/initial: run on these CPUs: %w", err)
	}
	child, err := e.spawn.start(e.compile)
	if back := unix.SchedSetaffinity(0, &old); back != nil {
		e.runtime.warn("restore our own CPU affinity: %v", back)
	}
	return child, err
}
