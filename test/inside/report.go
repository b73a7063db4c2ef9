package main

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/inside/view"
)

// report prints all that can be seen and tried from here without changing anything for good, for a
// comparison of engines. With "wait" it then stays until its input ends, and exits with 7.
func report(fds map[int]string, words []string) {
	r := view.Report{View: look(fds), Tree: tree("/", "/sys/fs/cgroup"), Controls: controls(), Values: map[string]string{}, Sockets: lines("/proc/net/unix")}
	for _, name := range []string{"attr/current", "loginuid", "coredump_filter", "timerslack_ns", "oom_score_adj"} {
		r.Values["/proc/self/"+name] = value("/proc/self/" + name)
	}
	for _, name := range sysctls {
		r.Values[name] = value("/proc/sys/" + strings.ReplaceAll(name, ".", "/"))
	}
	for _, m := range r.Mounts {
		r.Attempts = append(r.Attempts, attempt("write below "+m.Target, unix.Access(m.Target, unix.W_OK)))
	}
	for _, path := range guarded {
		r.Attempts = append(r.Attempts, attempt("read "+path, readSome(path)), attempt("write "+path, unix.Access(path, unix.W_OK)))
	}
	r.Attempts = append(r.Attempts, openDevices()...)
	line, err := json.Marshal(r)
	if err != nil {
		fail(err.Error())
	}
	os.Stdout.WriteString("REPORT " + string(line) + "\n")
	if slices.Contains(words, "wait") {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(7)
	}
}

// sysctls are those that belong to a namespace, and some that belong to the host.
var sysctls = strings.Fields(`kernel.hostname kernel.domainname kernel.shmmax kernel.shm_rmid_forced kernel.msgmax kernel.sem fs.mqueue.msg_max
	net.ipv4.ip_forward net.ipv4.ping_group_range net.ipv4.ip_unprivileged_port_start net.core.somaxconn kernel.randomize_va_space vm.overcommit_memory`)

// guarded are the paths that configs mask or make read-only, and their neighbours.
var guarded = strings.Fields(`/proc/kcore /proc/keys /proc/timer_list /proc/acpi /proc/scsi /proc/sysrq-trigger /proc/sys/kernel/hostname /proc/bus /proc/fs
	/proc/irq /proc/sys /proc/interrupts /proc/asound /proc/sched_debug /proc/1/ns /sys/firmware /sys/kernel /sys/fs/cgroup /etc/passwd /masked /masked-dir /etc`)

func value(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return errnoName(err)
	}
	return strings.Join(strings.Fields(strings.TrimRight(string(data), "\x00\n")), " ")
}

func attempt(what string, err error) view.Attempt {
	return view.Attempt{What: what, Errno: errnoName(err)}
}

// readSome tells whether there is anything to read, which there is not in what is masked.
func readSome(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		if err == nil && len(entries) == 0 {
			err = io.EOF
		}
		return err
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, make([]byte, 16))
	if err == nil && n <= 0 {
		err = io.EOF
	}
	return err
}

// openDevices opens the device files that are there, and others by nodes that it makes and removes.
func openDevices() []view.Attempt {
	var out []view.Attempt
	for _, name := range strings.Fields("null zero full random urandom tty ptmx console kmsg fuse net/tun made extra block") {
		fd, err := unix.Open("/dev/"+name, unix.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err == nil {
			unix.Close(fd)
		}
		out = append(out, attempt("open /dev/"+name, err))
	}
	const node = "/dev/berth-probe"
	for _, number := range []string{"c 1 3", "c 1 11", "c 5 1", "c 4 0", "c 10 200", "c 10 229", "c 136 0", "b 7 0", "b 254 0"} {
		var kind string
		var major, minor uint32
		fmt.Sscan(number, &kind, &major, &minor)
		mode := uint32(unix.S_IFCHR)
		if kind == "b" {
			mode = unix.S_IFBLK
		}
		err := unix.Mknod(node, mode|0o600, int(unix.Mkdev(major, minor)))
		out = append(out, attempt("mknod "+number, err))
		if err != nil {
			continue
		}
		for name, flags := range map[string]int{"read": unix.O_RDONLY, "write": unix.O_WRONLY} {
			fd, err := unix.Open(node, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
			if err == nil {
				unix.Close(fd)
			}
			out = append(out, attempt(name+" "+number, err))
		}
		unix.Unlink(node)
	}
	return out
}

// controls are what prctl(2) tells of this thread.
func controls() map[string]int {
	out := map[string]int{}
	for name, option := range map[string]int{
		"dumpable": unix.PR_GET_DUMPABLE, "keepcaps": unix.PR_GET_KEEPCAPS, "securebits": unix.PR_GET_SECUREBITS, "timerslack": unix.PR_GET_TIMERSLACK,
		"thp_disable": unix.PR_GET_THP_DISABLE, "io_flusher": unix.PR_GET_IO_FLUSHER, "tsc": unix.PR_GET_TSC, "mce_kill": unix.PR_MCE_KILL_GET,
		"no_new_privs": unix.PR_GET_NO_NEW_PRIVS,
	} {
		value, err := unix.PrctlRetInt(option, 0, 0, 0, 0)
		if err != nil {
			value = -1
		}
		out[name] = value
	}
	for name, option := range map[string]int{"subreaper": unix.PR_GET_CHILD_SUBREAPER, "pdeathsig": unix.PR_GET_PDEATHSIG} {
		out[name] = -1
		if value, err := getInt(option); err == nil {
			out[name] = value
		}
	}
	out["pgrp"] = 0
	if unix.Getpgrp() == os.Getpid() {
		out["pgrp"] = 1 // leads its group
	}
	return out
}

// tree describes the files of some file systems, some hundred at most: not those of the kernel's
// own, which tell of the host.
func tree(roots ...string) []view.File {
	const most = 300
	var out []view.File
	for _, root := range roots {
		filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case len(out) >= most:
				return fs.SkipAll
			case path == "/tmp/hooks":
				return nil
			case err != nil:
				out = append(out, view.File{Name: path, Error: errnoName(err)})
				return fs.SkipDir
			}
			out = append(out, file(path))
			if path == "/bin" || entry.IsDir() && kernels(path) {
				return fs.SkipDir
			}
			return nil
		})
	}
	return out
}

// kernels tells whether a directory is of proc, sysfs or cgroup.
func kernels(path string) bool {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return false
	}
	return slices.Contains([]int64{unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC}, int64(st.Type))
}

// caller runs a program as one that was started in other circumstances than usual.
//
//	inside caller umask=077,nice=5,ignore=10,block=12,cpus=0,nofile=512:1024,fd=9,oom=100,… PROGRAM ARGUMENT…
func caller(words []string) {
	for _, word := range strings.Split(words[0], ",") {
		name, text, _ := strings.Cut(word, "=")
		first, second, _ := strings.Cut(text, ":")
		n, err := strconv.ParseInt(first, 0, 64)
		if err == nil {
			err = callerIs(name, int(n), second)
		}
		if err != nil {
			fail("caller " + word + ": " + err.Error())
		}
	}
	become(words[1:])
}

func callerIs(name string, n int, second string) error {
	switch name {
	case "umask":
		unix.Umask(n)
	case "nice":
		return unix.Setpriority(unix.PRIO_PROCESS, 0, n)
	case "ignore":
		signal.Ignore(unix.Signal(n))
	case "block":
		set := unix.Sigset_t{}
		set.Val[0] = 1 << (n - 1)
		return unix.PthreadSigmask(unix.SIG_BLOCK, &set, nil)
	case "cpus":
		var set unix.CPUSet
		set.Set(n)
		return unix.SchedSetaffinity(0, &set)
	case "batch":
		return unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: int32(n)}, 0)
	case "ioprio":
		_, _, errno := unix.RawSyscall(unix.SYS_IOPRIO_SET, 1, 0, uintptr(n))
		return errnoOrNil(errno)
	case "limit": // limit=NUMBER:SOFT, with the hard limit as it is
		soft, err := strconv.ParseUint(second, 0, 64)
		if err != nil {
			return err
		}
		var l unix.Rlimit
		if err := unix.Prlimit(0, n, nil, &l); err != nil {
			return err
		}
		l.Cur = min(soft, l.Max)
		return unix.Prlimit(0, n, &l, nil)
	case "fd":
		_, err := unix.FcntlInt(1, unix.F_DUPFD, n)
		return err
	case "oom":
		return os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(n)), 0)
	case "slack":
		return unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(n), 0, 0, 0)
	case "dumpable":
		return unix.Prctl(unix.PR_SET_DUMPABLE, uintptr(n), 0, 0, 0)
	case "personality":
		_, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, uintptr(n), 0, 0)
		return errnoOrNil(errno)
	case "nnp":
		return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	case "thp":
		return unix.Prctl(unix.PR_SET_THP_DISABLE, uintptr(n), 0, 0, 0)
	case "inheritable":
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return err
		}
		data[n/32].Inheritable |= 1 << (n % 32)
		return unix.Capset(&header, &data[0])
	case "ambient":
		if err := callerIs("inheritable", n, ""); err != nil {
			return err
		}
		return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, uintptr(n), 0, 0)
	case "groups":
		return unix.Setgroups([]int{n})
	default:
		return fmt.Errorf("unknown")
	}
	return nil
}

func errnoOrNil(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}
