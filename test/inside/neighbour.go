package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/inside/view"
)

// What a hostile neighbour does to files. A name that is replaced is kept under name.kept, for
// "restore".
func init() {
	attempts["exchange"] = func(a []string) (string, error) {
		return "", unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
	}
	attempts["link"] = replacing(func(name string, a []string) error { return os.Symlink(a[0], name) })
	attempts["fifo"] = replacing(func(name string, _ []string) error { return unix.Mkfifo(name, 0o666) })
	attempts["dir"] = replacing(func(name string, _ []string) error { return os.Mkdir(name, 0o777) })
	attempts["file"] = replacing(func(name string, a []string) error { return os.WriteFile(name, []byte(strings.Join(a, ",")), 0o666) })
	attempts["node"] = replacing(func(name string, a []string) error {
		return unix.Mknod(name, unix.S_IFBLK|0o666, int(unix.Mkdev(number(a[0]), number(a[1]))))
	})
	attempts["restore"] = func(a []string) (string, error) {
		if err := os.RemoveAll(a[0]); err != nil {
			return "", err
		}
		return "", os.Rename(a[0]+".kept", a[0])
	}
	attempts["chmod"] = func(a []string) (string, error) {
		mode, err := strconv.ParseUint(a[1], 8, 32)
		if err != nil {
			return "", err
		}
		return "", unix.Chmod(a[0], uint32(mode))
	}
	attempts["lease"] = lease
	attempts["name"] = func(a []string) (string, error) {
		return "", os.WriteFile("/proc/self/comm", []byte(strings.Join(a, ",")), 0)
	}
	attempts["mount-over"] = func(a []string) (string, error) { return "", unix.Mount("over", a[0], "tmpfs", 0, "") }
	attempts["pids"] = fill
	attempts["leave"] = func([]string) (string, error) { leave <- struct{}{}; return "", nil }
	attempts["freeze"] = freeze
	attempts["nest"] = nest
	attempts["become"] = reborn
	attempts["reach"] = func([]string) (string, error) { return reachable(nil) }
	attempts["signal"] = signalAll
	attempts["forge"] = forge
}

func replacing(make func(name string, a []string) error) func([]string) (string, error) {
	return func(a []string) (string, error) {
		if err := os.Rename(a[0], a[0]+".kept"); err != nil {
			return "", err
		}
		return "", make(a[0], a[1:])
	}
}

var leased *os.File

// lease holds up every open of a file until it is given up, which it is when the next one is taken
// or by the kernel after its time.
func lease(a []string) (string, error) {
	if leased != nil {
		leased.Close()
		leased = nil
	}
	if a[0] == "" {
		return "", nil
	}
	f, err := os.OpenFile(a[0], os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	// Its signal would end this process.
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETSIG, int(unix.SIGURG)); err != nil {
		return "", err
	}
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	leased = f
	return "", err
}

var children []*exec.Cmd

// fill starts processes up to a number, or ends those that it has started.
func fill(a []string) (string, error) {
	for _, c := range children {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	children = nil
	for range number(a[0]) {
		c := exec.Command("/bin/busybox", "sleep", "100000")
		if err := c.Start(); err != nil {
			return strconv.Itoa(len(children)), err
		}
		children = append(children, c)
	}
	return strconv.Itoa(len(children)), nil
}

// cgroups are the hierarchies that are mounted here, by the name of the file that freezes.
func cgroups() map[string]string {
	found := map[string]string{}
	for _, m := range view.ParseMountinfo(read("/proc/self/mountinfo")) {
		switch m.Type {
		case "cgroup":
			if _, err := os.Stat(m.Target + "/tasks"); err == nil {
				found[m.Target] = "freezer.state"
			}
		case "cgroup2":
			found[m.Target] = "cgroup.freeze"
		}
	}
	return found
}

// freeze freezes a process of its own in a cgroup of its own below.
func freeze([]string) (string, error) {
	if _, err := fill([]string{"1"}); err != nil {
		return "", err
	}
	frozen := ""
	var failed error
	for dir, file := range cgroups() {
		below := dir + "/below"
		if err := os.Mkdir(below, 0o755); err != nil {
			failed = err
			continue
		}
		if _, err := os.Stat(below + "/" + file); err != nil {
			continue // its hierarchy does not freeze
		}
		if err := os.WriteFile(below+"/cgroup.procs", []byte(strconv.Itoa(children[0].Process.Pid)), 0); err != nil {
			failed = err
			continue
		}
		word := map[string]string{"freezer.state": "FROZEN", "cgroup.freeze": "1"}[file]
		if failed = os.WriteFile(below+"/"+file, []byte(word), 0); failed == nil {
			frozen += " " + below
		}
	}
	if frozen != "" {
		return frozen, nil
	}
	return "", failed
}

// nest makes cgroups inside of one another, in each hierarchy.
func nest(a []string) (string, error) {
	for dir := range cgroups() {
		for range number(a[0]) {
			dir += "/n"
			if err := os.Mkdir(dir, 0o755); err != nil {
				return dir, err
			}
		}
	}
	return "", nil
}

// reborn executes this program anew in namespaces of its own: by a program of one thread, which
// alone may leave its user namespace.
func reborn(a []string) (string, error) {
	words := append(append([]string{"/bin/busybox", "unshare"}, a...), "/inside", "agent")
	return "", syscall.Exec(words[0], words, os.Environ())
}

// visible are the processes that this one sees, but itself and its children.
func visible() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		own := false
		for _, c := range children {
			own = own || c.Process.Pid == pid
		}
		if !own {
			pids = append(pids, pid)
		}
	}
	return pids
}

// reachable tells of the processes that this one could trace: the kernel asks the same before it
// lets their memory be opened. What is theirs is handed to use, descriptor by descriptor.
func reachable(use func(fd int)) (string, error) {
	found := []view.Reached{}
	for _, pid := range visible() {
		dir := "/proc/" + strconv.Itoa(pid)
		mem, err := unix.Open(dir+"/mem", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		unix.Close(mem)
		found = append(found, reached(pid))
		if use != nil {
			steal(pid, use)
		}
	}
	text, err := json.Marshal(found)
	return string(text), err
}

func steal(pid int, use func(fd int)) {
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(pidfd)
	names, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/fd/*")
	for _, name := range names {
		n, _ := strconv.Atoi(filepath.Base(name))
		if fd, err := unix.PidfdGetfd(pidfd, n, 0); err == nil {
			use(fd)
			unix.Close(fd)
		}
	}
}

// signalAll sends a signal to all that it sees, and tells of those that it could send it to.
func signalAll(a []string) (string, error) {
	found := []view.Reached{}
	for _, pid := range visible() {
		if unix.Kill(pid, 0) != nil {
			continue // as for any signal; on a host this is nearly all
		}
		r := reached(pid) // while it is there to be looked at
		if unix.Kill(pid, unix.Signal(number(a[0]))) == nil {
			found = append(found, r)
		}
	}
	text, err := json.Marshal(found)
	return string(text), err
}

func reached(pid int) view.Reached {
	dir := "/proc/" + strconv.Itoa(pid)
	r := view.Reached{PID: pid, Status: status(dir + "/status")}
	r.Exe, _ = os.Readlink(dir + "/exe")
	return r
}

// forge writes a message to each socket of each process that it reaches: an Ask of a kind and with
// a value, or bytes of any number.
func forge(a []string) (string, error) {
	if len(a) < 2 {
		return "", errors.New("a kind and a value are needed")
	}
	var message []byte
	if a[0] == "bytes" {
		message = make([]byte, number(a[1]))
	} else {
		message = binary.LittleEndian.AppendUint32(nil, 0x4b534142)
		message = binary.LittleEndian.AppendUint32(message, uint32(number(a[0])))
		value, err := strconv.ParseUint(a[1], 0, 64)
		if err != nil {
			return "", err
		}
		message = binary.LittleEndian.AppendUint64(message, value)
	}
	return reachable(func(fd int) {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
			_ = unix.Sendto(fd, message, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil)
		}
	})
}
