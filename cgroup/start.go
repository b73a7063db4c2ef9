package cgroup

import (
	"os"
	"os/exec"
	"syscall"

	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// Start starts a command in the group: the new process is in it, in every hierarchy, from its first
// instruction on, so nothing that it forks can be outside. (A command that is started and then
// joined may have forked before, and what it forked is under no limit.) It costs no grace period.
//
// On version 2 the kernel clones the process into the group (Linux 5.7). On version 1 a child is
// where the thread is that forks it: so a thread enters the group, forks, and returns.
func (g *Group) Start(cmd *exec.Cmd) error {
	files, err := g.joinFiles()
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	fd, err := g.CloneFD()
	if err != nil {
		return err
	}
	if fd >= 0 {
		attr := syscall.SysProcAttr{}
		if cmd.SysProcAttr != nil {
			attr = *cmd.SysProcAttr
		}
		attr.UseCgroupFD, attr.CgroupFD = true, fd
		cmd.SysProcAttr = &attr
	}
	if len(files) == 0 {
		return cmd.Start()
	}
	// What stands for streams that are not given is opened before: the group may be denied devices.
	release, err := fillStreams(cmd)
	if err != nil {
		return err
	}
	defer release()
	sys.OnThrowawayThread(func() { err = g.startOnThread(cmd, files) })
	return err
}

// startOnThread enters the group with the calling thread, starts the command, and returns: the
// thread ends soon, but until then it would be a task in the group.
func (g *Group) startOnThread(cmd *exec.Cmd, files []*os.File) error {
	home, err := g.homes()
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range home {
			_ = enter(f)
			f.Close()
		}
	}()
	for _, f := range files {
		if err := enter(f); err != nil {
			return g.explainEntry(f.Name(), err)
		}
	}
	return cmd.Start()
}

// fillStreams gives a command /dev/null for each stream that it lacks, until release.
func fillStreams(cmd *exec.Cmd) (release func(), err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	in, out, errs := cmd.Stdin, cmd.Stdout, cmd.Stderr
	if in == nil {
		cmd.Stdin = null
	}
	if out == nil {
		cmd.Stdout = null
	}
	if errs == nil {
		cmd.Stderr = null
	}
	return func() {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, errs
		null.Close()
	}, nil
}

// enter moves the calling thread: the kernel takes no lock on other threads for "0", and so waits
// for nothing.
func enter(tasks *os.File) error {
	_, err := unix.Write(int(tasks.Fd()), []byte("0"))
	return err
}

// homes opens the tasks files of the cgroups that the calling thread is in, as far as they can be
// seen.
func (g *Group) homes() ([]*os.File, error) {
	text, err := readWhole(unix.AT_FDCWD, g.host.proc("thread-self/cgroup"), make([]byte, 1024))
	if err != nil {
		return nil, &Error{Op: "read", Path: "/proc/thread-self/cgroup", Err: err}
	}
	was, err := parseMemberships(text)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range g.nodes {
		n := &g.nodes[i]
		for _, m := range was {
			if n.Version == 2 || !m.in(n.Hierarchy) {
				continue
			}
			path, err := n.within(m.path)
			if err != nil {
				continue
			}
			at := node{Hierarchy: n.Hierarchy, path: path}
			if fd, err := openAt(unix.AT_FDCWD, at.full("tasks"), unix.O_WRONLY); err == nil {
				files = append(files, os.NewFile(uintptr(fd), at.full("tasks")))
			}
		}
	}
	return files, nil
}
