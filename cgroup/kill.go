package cgroup

import (
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Kill sends SIGKILL to every process of the group and below it, forks in
// progress included, and returns without waiting for their end: WaitEmpty and
// Destroy do that. On version 2 the kernel does it in one step (cgroup.kill,
// Linux 5.14); else the group is frozen, signalled and thawed. Processes in a
// frozen version 1 group are thawed, since they could not die.
func (g *Group) Kill() error {
	nodes, err := g.own("kill")
	if err != nil {
		return err
	}
	there := false
	for _, n := range nodes {
		if err := g.mayChange("kill", n); err != nil {
			return err
		}
		if n.Version == 2 {
			err := g.write(n, "cgroup.kill", "1")
			if err == nil {
				there = true
				continue
			}
			// ENOENT: an older kernel. EOPNOTSUPP: a threaded group.
			if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EOPNOTSUPP) && !gone(err) {
				return err
			}
		}
		err := g.killNode(n)
		if gone(err) {
			continue
		}
		if err != nil {
			return err
		}
		there = true
	}
	if !there {
		return &Error{Op: "kill", Path: g.path, Err: os.ErrNotExist}
	}
	return nil
}

// killNode signals what one directory lists, until a list has no new process. A
// process that has the signal cannot fork any more, but one fork may have been
// under way and not listed yet: two lists in a row must agree.
func (g *Group) killNode(n *node) error {
	signalled := map[int]bool{}
	until := time.Now().Add(g.host.Timeout)
	stopped := false
	for quiet := 0; quiet < 2; {
		pids, err := g.procsOf(n, true)
		if err != nil {
			return err
		}
		pids = slices.DeleteFunc(pids, func(pid int) bool { return signalled[pid] })
		if len(pids) == 0 {
			if len(signalled) == 0 {
				break
			}
			quiet++
			continue
		}
		quiet = 0
		if !stopped {
			// Only to hold off a storm of forks; it need not be complete.
			stopped = true
			if n.Version == 2 {
				writeFreezer(g, n, "cgroup.freeze", "1")
				defer writeFreezer(g, n, "cgroup.freeze", "0")
			} else if n.Has("freezer") {
				writeFreezer(g, n, "freezer.state", "FROZEN")
			}
		}
		if err := g.signalListed(n, pids, unix.SIGKILL); err != nil {
			return err
		}
		for _, pid := range pids {
			signalled[pid] = true
		}
		if time.Now().After(until) {
			return &Error{Op: "kill", Path: n.full(""), Err: ErrTimeout, Hint: "new processes appear faster than they can be killed"}
		}
	}
	if n.Has("freezer") && n.Version == 1 {
		return g.thawTree(n)
	}
	return nil
}

// writeFreezer is best effort: a group that cannot be stopped is killed all the same.
func writeFreezer(g *Group, n *node, file, value string) { _ = g.write(n, file, value) }

// Signal sends a signal to every process of the group and below it. A SIGKILL
// is a Kill; for other signals, processes that are forked meanwhile may be
// missed.
func (g *Group) Signal(signal unix.Signal) error {
	if signal == unix.SIGKILL {
		return g.Kill()
	}
	nodes, err := g.own("signal")
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := g.mayChange("signal", n); err != nil {
			return err
		}
		pids, err := g.procsOf(n, true)
		if gone(err) || err == nil && len(pids) == 0 {
			continue
		}
		if err != nil {
			return err
		}
		return g.signalListed(n, pids, signal)
	}
	return nil
}

// signalListed signals processes by descriptors that are opened before the
// group is listed again: a number that was given to another process in between
// is not on the second list.
func (g *Group) signalListed(n *node, pids []int, signal unix.Signal) error {
	// Descriptors are few by default (1024), processes need not be. The list is read again for
	// each chunk, so with more descriptors the chunks are larger.
	size := 128
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err == nil {
		size = int(min(max(limit.Cur/8, 128), 4096))
	}
	for chunk := range slices.Chunk(pids, size) {
		if err := g.signalChunk(n, chunk, signal); err != nil {
			return err
		}
	}
	return nil
}

func (g *Group) signalChunk(n *node, pids []int, signal unix.Signal) error {
	fds := make([]int, len(pids))
	for i, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			fd = -1 // it has ended, or is a thread of a process listed elsewhere
		}
		fds[i] = fd
	}
	listed, err := g.procsOf(n, true)
	slices.Sort(listed)
	var failed error
	for i, fd := range fds {
		if fd < 0 {
			continue
		}
		if _, there := slices.BinarySearch(listed, pids[i]); err == nil && there {
			if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil && err != unix.ESRCH && failed == nil {
				failed = &Error{Op: "signal the processes of", Path: n.full(""), Err: err}
			}
		}
		unix.Close(fd)
	}
	if err != nil {
		return err
	}
	return failed
}
