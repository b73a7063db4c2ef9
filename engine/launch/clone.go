package launch

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// clone makes the child, which executes the image with the given descriptors. It
// returns the child's name until it executes something else.
func (s *Spawn) clone(image int, files []uintptr) (name string, pid, pidfd int, err error) {
	v := sys.Vfork{Flags: s.CloneFlags, Cgroup: s.Cgroup, Files: files, Image: image, Name: imageName}
	if p := s.patience(); s.Cgroup >= 0 && (p.bound > 0 || p.interrupted != nil) {
		v.Await = p.awaitEntry
	}
	name, pid, pidfd, err = v.Start()
	if errors.Is(err, sys.ErrNoClone3) {
		return s.forkExec(image, files)
	}
	return name, pid, pidfd, err
}

// forkExec is clone where clone3 is not to be had.
func (s *Spawn) forkExec(image int, files []uintptr) (name string, pid, pidfd int, err error) {
	high, err := unix.FcntlInt(uintptr(image), unix.F_DUPFD_CLOEXEC, firstFree(files))
	if err != nil {
		return "", 0, -1, fmt.Errorf("move the descriptor of the container's init: %w", err)
	}
	defer unix.Close(high)
	name, pidfd = strconv.Itoa(high), -1
	attr := syscall.ProcAttr{
		Env: []string{}, Files: files,
		Sys: &syscall.SysProcAttr{Cloneflags: s.CloneFlags, PidFD: &pidfd, UseCgroupFD: s.Cgroup >= 0, CgroupFD: s.Cgroup},
	}
	pid, err = syscall.ForkExec("/proc/self/fd/"+name, []string{imageName}, &attr)
	return name, pid, pidfd, os.NewSyscallError("clone", err)
}

// firstFree is the least number of a descriptor that is still itself in the child
// after ForkExec has given the others their numbers there. What is lower than
// the number that it gets is moved out of the way first, to above all others, and
// so is ForkExec's own pipe: that is lower if some other thread has closed a
// descriptor meanwhile, be ours the highest of all.
func firstFree(files []uintptr) int {
	free, moved := len(files), 1 // the pipe
	for i, fd := range files {
		free = max(free, int(fd))
		if int(fd) < i {
			moved++
		}
	}
	return free + 1 + moved + 1 // one for a number that it skips, its own pipe's
}
