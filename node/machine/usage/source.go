package usage

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/internal/subdir"
	"github.com/berth-runtime/berth/node/machine"
	"golang.org/x/sys/unix"
)

// source reads the few files that are needed of each cgroup, by three system calls each: there may
// be thousands of cgroups, and each scrape of /metrics reads them all.
type source struct {
	memory, pids, cpu file
	inactive          file // in the same directory as memory
	inactiveKey       string
	cpuKey            string // "" where the file has a number only
	tree              string // the hierarchy in which is looked for cgroups
	events            bool   // it tells whether a cgroup is populated
	buf               [16 << 10]byte

	// What is below base is opened from descriptors of it: each directory on the way from the top
	// costs a lock of the cgroup file system, which is more than all else about an open.
	base string
	dirs map[string]int // of base, by the top of its hierarchy
}

// file is one of every cgroup: the top of its hierarchy, and its name.
type file struct{ top, name string }

func newSource(m *machine.Machine) *source {
	s := &source{}
	at := func(controller string) (top string, version int) {
		h := m.Cgroups.Controller(controller)
		if h == nil {
			return "", 0
		}
		return m.Root + strings.TrimSuffix(h.Mountpoint, "/"), h.Version
	}
	if top, version := at("memory"); version == 2 {
		s.memory, s.inactive, s.inactiveKey = file{top, "/memory.current"}, file{top, "/memory.stat"}, "inactive_file "
	} else if version == 1 {
		// The total is that of the cgroups below, too, as the usage is.
		s.memory, s.inactive, s.inactiveKey = file{top, "/memory.usage_in_bytes"}, file{top, "/memory.stat"}, "total_inactive_file "
	}
	if top, version := at("pids"); version > 0 {
		s.pids = file{top, "/pids.current"}
	}
	unified := ""
	if h := m.Cgroups.Unified(); h != nil {
		unified = m.Root + strings.TrimSuffix(h.Mountpoint, "/")
	}
	if top, version := at("cpuacct"); version == 1 {
		s.cpu = file{top, "/cpuacct.usage"}
	} else if unified != "" {
		s.cpu, s.cpuKey = file{unified, "/cpu.stat"}, "usage_usec "
	}
	for _, f := range []file{s.pids, s.memory, s.cpu} { // on version 1 a cgroup of pids has the fewest files
		if s.tree == "" {
			s.tree = f.top
		}
	}
	if s.tree == "" && len(m.Cgroups.Hierarchies()) > 0 {
		s.tree = m.Root + strings.TrimSuffix(m.Cgroups.Hierarchies()[0].Mountpoint, "/")
	}
	s.events = s.tree == unified
	return s
}

// enter makes a cgroup the base, until leave is called.
func (s *source) enter(at string) (leave func()) {
	base, dirs := s.base, s.dirs
	now := map[string]int{}
	for _, top := range []string{s.tree, s.memory.top, s.pids.top, s.cpu.top} {
		if _, open := now[top]; open || top == "" {
			continue
		}
		if fd, err := unix.Open(top+at, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
			now[top] = fd
		}
	}
	s.base, s.dirs = at, now
	return func() {
		for _, fd := range now {
			unix.Close(fd)
		}
		s.base, s.dirs = base, dirs
	}
}

// open opens a file or directory of a cgroup.
func (s *source) open(top, at, name string, flags int) (int, error) {
	if dir, ok := s.dirs[top]; ok && strings.HasPrefix(at, s.base) && len(at) > len(s.base) && at[len(s.base)] == '/' {
		return unix.Openat(dir, at[len(s.base)+1:]+name, flags|unix.O_CLOEXEC, 0)
	}
	return unix.Open(top+at+name, flags|unix.O_CLOEXEC, 0)
}

// read gives a file of a cgroup; nil if it is not there. The next read overwrites it.
func (s *source) read(f file, at string) []byte {
	if f.top == "" {
		return nil
	}
	fd, err := s.open(f.top, at, f.name, unix.O_RDONLY)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	for {
		// The kernel makes such a file in one piece.
		n, err := unix.Read(fd, s.buf[:])
		if err != unix.EINTR {
			return s.buf[:max(n, 0)]
		}
	}
}

func number(text []byte) int64 {
	n, _ := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
	return n
}

// keyed finds one value in lines of "key value".
func keyed(text []byte, key string) int64 {
	for len(text) > 0 {
		line := text
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if len(line) > len(key) && string(line[:len(key)]) == key {
			return number(line[len(key):])
		}
	}
	return 0
}

func (s *source) processors(at string) uint64 {
	text := s.read(s.cpu, at)
	if s.cpuKey == "" {
		return uint64(number(text))
	}
	return uint64(keyed(text, s.cpuKey)) * 1000
}

// workingSet is the memory without files that the kernel gives up first.
func (s *source) workingSet(at string) int64 {
	used := number(s.read(s.memory, at))
	if used == 0 {
		return 0
	}
	return max(used-keyed(s.read(s.inactive, at), s.inactiveKey), 0)
}

// group measures a cgroup; false if it is not there.
func (s *source) group(at string) (Use, bool) {
	var st unix.Stat_t
	there := false
	for _, top := range []string{s.tree, s.memory.top, s.pids.top, s.cpu.top} {
		there = there || top != "" && unix.Stat(top+at, &st) == nil
	}
	if !there {
		return Use{}, false
	}
	return Use{CPU: s.processors(at), Memory: s.workingSet(at), PIDs: number(s.read(s.pids, at))}, true
}

// runs gives the tasks of a container; false if nothing runs in it.
func (s *source) runs(at string) (tasks int64, ok bool) {
	tasks = number(s.read(s.pids, at))
	return tasks, tasks > 0 || s.populated(at, 0)
}

// populated is asked where the pids controller counts nothing, or is not there.
func (s *source) populated(at string, depth int) bool {
	if s.events {
		return keyed(s.read(file{s.tree, "/cgroup.events"}, at), "populated ") == 1
	}
	if len(s.read(file{s.tree, "/cgroup.procs"}, at)) > 0 {
		return true
	}
	for _, name := range s.children(at) {
		if depth < 16 && s.populated(at+"/"+name, depth+1) {
			return true
		}
	}
	return false
}

// children lists the cgroups in one.
func (s *source) children(at string) []string {
	dir, err := s.open(s.tree, at, "", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil
	}
	defer unix.Close(dir)
	names, _ := subdir.Names(dir, s.buf[:])
	return names
}
