package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/inside/view"
)

// seize FILE [forge|hold]: takes over each process that appears in the pid namespace, as early as
// the kernel lets it (ptrace(2)), and writes down what that process has at this moment, a line for
// each. With forge it says things to the runtime by that process's socket, with hold it never lets
// go. It ends when there is a file FILE.stop.
func seize(words []string) {
	out, err := os.OpenFile(words[0], os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		fail(err.Error())
	}
	// Ready is told by an empty line.
	out.WriteString("\n")
	for last, round := os.Getpid(), 0; ; round++ {
		if round%1000 == 0 {
			if _, err := os.Stat(words[0] + ".stop"); err == nil {
				return
			}
			// On a busy machine more may have come and gone than we look ahead.
			if given := lastPID(); given > last+7 {
				last = given
			}
		}
		// Pids are given in order: the next process is one of the next few.
		for pid := last + 1; pid < last+8; pid++ {
			if unix.PtraceSeize(pid) != nil {
				continue
			}
			last = pid
			if seized, ok := held(pid); ok {
				line, err := json.Marshal(seized)
				if err != nil {
					fail(err.Error())
				}
				out.Write(append(line, '\n'))
				switch {
				case len(words) < 2:
				case words[1] == "forge":
					forgeAsks(pid, &seized, round)
				case strings.Contains(seized.Exe, "berth-init"): // hold
					for {
						unix.Pause()
					}
				}
			}
			if unix.PtraceDetach(pid) != nil {
				unix.Wait4(pid, nil, unix.WALL, nil) // it was killed meanwhile
			}
			break
		}
	}
}

// lastPID is the pid that was given last in our pid namespace (proc_sys_kernel(5)); 0 where the
// kernel does not tell.
func lastPID() int {
	text, _ := os.ReadFile("/proc/sys/kernel/ns_last_pid")
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// held stops a process that was seized, and looks at it.
func held(pid int) (s view.Seized, ok bool) {
	if unix.PtraceInterrupt(pid) != nil {
		return s, false
	}
	if _, err := unix.Wait4(pid, nil, unix.WALL, nil); err != nil {
		return s, false
	}
	folder := "/proc/" + strconv.Itoa(pid)
	s.PID, s.Status = pid, map[string]string{}
	for _, line := range lines(folder + "/status") {
		if key, value, found := strings.Cut(line, ":"); found {
			s.Status[key] = strings.Join(strings.Fields(value), " ")
		}
	}
	s.Cgroups = lines(folder + "/cgroup")
	s.Exe, _ = os.Readlink(folder + "/exe")
	s.FDs = map[string]string{}
	names, _ := filepath.Glob(folder + "/fd/*")
	for _, name := range names {
		s.FDs[filepath.Base(name)], _ = os.Readlink(name)
	}
	return s, len(s.Status) > 0
}

// forgeAsks says one of several things on the sockets of a process that was seized.
func forgeAsks(pid int, s *view.Seized, round int) {
	const limits, forked, listener, minder, mountFlags = 11, 10, 4, 12, 15
	messages := [][]byte{
		ask(limits, 1<<40), ask(forked, 1), ask(forked, uint64(pid)), ask(forked, 1<<63), ask(minder, 1), ask(listener, 0), ask(mountFlags, 1<<62), ask(99, 7), {1, 2, 3}, ask(1, 0),
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(pidfd)
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(null)
	for name, target := range s.FDs {
		n, err := strconv.Atoi(name)
		if err != nil || !strings.HasPrefix(target, "socket:") {
			continue
		}
		fd, err := unix.PidfdGetfd(pidfd, n, 0)
		if err != nil {
			continue
		}
		var rights []byte
		if round%2 == 1 {
			rights = unix.UnixRights(null, null)[:unix.CmsgSpace(8)]
		}
		_ = unix.Sendmsg(fd, messages[forged%len(messages)], rights, nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		forged++
		unix.Close(fd)
	}
}

var forged int

// ask is a request as the engine's init sends it, written down here once more.
func ask(kind uint32, value uint64) []byte {
	b := binary.LittleEndian.AppendUint32([]byte("BASK"), kind)
	return binary.LittleEndian.AppendUint64(b, value)
}
