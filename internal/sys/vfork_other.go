//go:build !amd64 && !arm64

package sys

// Vfork is for the machines that have an interpreter for the init (package program).
type Vfork struct {
	Flags  uintptr
	Cgroup int
	Files  []uintptr
	Image  int
	Name   string
	Await  func(done int) error
}

// Start is refused, as where there is no clone3.
func (v *Vfork) Start() (comm string, pid, pidfd int, err error) { return "", 0, -1, ErrNoClone3 }
