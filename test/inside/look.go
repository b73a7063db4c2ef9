package main

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/test/inside/view"
)

func look(fds map[int]string) view.View {
	v := view.View{
		Args: os.Args, Env: os.Environ(), FDs: fds,
		PID: os.Getpid(), PPID: os.Getppid(),
		Status:  status("/proc/self/status"),
		Mounts:  view.ParseMountinfo(read("/proc/self/mountinfo")),
		Limits:  limits(),
		NS:      namespaces(),
		Cgroups: lines("/proc/self/cgroup"),
		UIDMap:  lines("/proc/self/uid_map"), GIDMap: lines("/proc/self/gid_map"),
		Setgroup: strings.TrimSpace(read("/proc/self/setgroups")),
		OOMScore: strings.TrimSpace(read("/proc/self/oom_score_adj")),
		Offsets:  lines("/proc/self/timens_offsets"),
		Sched:    scheduler(), IOPrio: ioPriority(), MemPol: memoryPolicy(),
		CPUs: affinity(), Keyring: sessionKeyring(), TTY: terminal(), Links: links(),
	}
	v.SID, _ = unix.Getsid(0)
	v.Exe, _ = os.Readlink("/proc/self/exe")
	// Not os.Getwd, which believes $PWD.
	buf := make([]byte, unix.PathMax)
	if n, err := unix.Getcwd(buf); err == nil {
		v.Cwd = string(bytes.TrimRight(buf[:n], "\x00"))
	}
	var uts unix.Utsname
	if unix.Uname(&uts) == nil {
		v.Hostname = unix.ByteSliceToString(uts.Nodename[:])
		v.Domain = unix.ByteSliceToString(uts.Domainname[:])
		v.Machine = unix.ByteSliceToString(uts.Machine[:])
	}
	persona, _, _ := unix.RawSyscall(unix.SYS_PERSONALITY, 0xffffffff, 0, 0)
	v.Persona = uint64(persona)
	return v
}

func read(path string) string {
	data, _ := os.ReadFile(path)
	return string(data)
}

func lines(path string) []string {
	var out []string
	for _, line := range strings.Split(read(path), "\n") {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			out = append(out, line)
		}
	}
	return out
}

func status(file string) map[string]string {
	m := map[string]string{}
	for _, line := range strings.Split(read(file), "\n") {
		if key, value, ok := strings.Cut(line, ":"); ok {
			m[key] = strings.Join(strings.Fields(value), " ")
		}
	}
	return m
}

// openFDs lists the descriptors that the process was started with. It reads with raw calls: the os
// package would open its poller first, and list that too.
func openFDs() map[int]string {
	fds := map[int]string{}
	dir, err := unix.Open("/proc/self/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fds
	}
	defer unix.Close(dir)
	buf, link := make([]byte, 8192), make([]byte, 4096)
	for {
		n, err := unix.ReadDirent(dir, buf)
		if err != nil || n <= 0 {
			return fds
		}
		_, _, names := unix.ParseDirent(buf[:n], -1, nil)
		for _, name := range names {
			fd, err := strconv.Atoi(name)
			if err != nil || fd == dir {
				continue
			}
			// What outlived an exec isn't close-on-exec: the Go runtime's own files, which it opens
			// before main, are.
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
				continue
			}
			if n, err := unix.Readlinkat(dir, name, link); err == nil {
				fds[fd] = string(link[:n])
			}
		}
	}
}

func namespaces() map[string]string {
	ns := map[string]string{}
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"} {
		ns[kind], _ = os.Readlink("/proc/self/ns/" + kind)
	}
	return ns
}

func links() []view.Link {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var out []view.Link
	for _, i := range interfaces {
		link := view.Link{Name: i.Name, Index: i.Index, MTU: i.MTU, Up: i.Flags&net.FlagUp != 0, Hardware: i.HardwareAddr.String()}
		addresses, _ := i.Addrs()
		for _, a := range addresses {
			link.Addresses = append(link.Addresses, a.String())
		}
		out = append(out, link)
	}
	return out
}

func terminal() *view.TTY {
	size, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
	if err != nil {
		return nil
	}
	t := &view.TTY{Rows: size.Row, Cols: size.Col}
	if termios, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		t.ONLCR = termios.Oflag&unix.ONLCR != 0
	}
	_, err = unix.IoctlGetInt(0, unix.TIOCGSID)
	t.Controls = err == nil
	t.Name, _ = os.Readlink("/proc/self/fd/0")
	var st unix.Stat_t
	if unix.Fstat(0, &st) == nil {
		t.UID, t.Mode = st.Uid, st.Mode&0o7777
	}
	return t
}

// files describes the named paths; of a name that ends in a slash, dirs lists the directory
// instead.
func files(names []string) map[string]view.File {
	out := map[string]view.File{}
	for _, name := range names {
		if !strings.HasSuffix(name, "/") {
			out[name] = file(name)
		}
	}
	return out
}

func dirs(names []string) map[string][]view.File {
	out := map[string][]view.File{}
	for _, name := range names {
		if !strings.HasSuffix(name, "/") {
			continue
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			out[name] = []view.File{{Name: name, Error: errnoName(err)}}
			continue
		}
		out[name] = []view.File{}
		for _, entry := range entries {
			f := file(filepath.Join(name, entry.Name()))
			f.Name = entry.Name()
			out[name] = append(out[name], f)
		}
	}
	return out
}

func file(path string) view.File {
	f := view.File{Name: path}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		f.Error = errnoName(err)
		return f
	}
	f.Mode, f.UID, f.GID, f.Size, f.Inode, f.Device = st.Mode&0o7777, st.Uid, st.Gid, st.Size, st.Ino, uint64(st.Dev)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		f.Type = "file"
	case unix.S_IFDIR:
		f.Type = "dir"
	case unix.S_IFLNK:
		f.Type = "link"
		f.LinkTarget, _ = os.Readlink(path)
	case unix.S_IFCHR:
		f.Type, f.Major, f.Minor = "char", unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))
	case unix.S_IFBLK:
		f.Type, f.Major, f.Minor = "block", unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))
	case unix.S_IFIFO:
		f.Type = "fifo"
	case unix.S_IFSOCK:
		f.Type = "socket"
	}
	return f
}
