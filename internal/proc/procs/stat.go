package procs

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// Ticks is how many of a clock_t of /proc are a second: USER_HZ, the same on all architectures
// that Linux is maintained for but alpha and ia64.
const Ticks = 100

// A Stat is what /proc/PID/stat says of a process (proc_pid_stat(5)).
type Stat struct {
	PID, Parent int
	// Name is what the kernel calls it: 15 bytes of what it executes, or what it says itself.
	Name     string
	State    byte   // Z of one that has ended
	Terminal uint64 // device number, 0 for none
	Flags    uint64 // PF_* of include/linux/sched.h
	// User and System are the time that it has used, Start is since boot, as the reader's time
	// namespace has it; all are in Ticks.
	User, System, Start uint64
	Resident            uint64 // pages
}

// ReadStat reads a process's stat, by one read: it is less than a page.
func ReadStat(pid int) (*Stat, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/stat"
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	var buf [1536]byte // a name of 64 bytes, as kernel threads have it, and 51 numbers of 20 digits
	n, err := unix.Read(fd, buf[:])
	if err == unix.ESRCH {
		return nil, ErrGone
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	s, err := ParseStat(buf[:n])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// ParseStat reads the text of a file stat. The name may hold anything, parentheses and line ends
// too; what follows its last one, from field 3 on, is numbers.
func ParseStat(text []byte) (*Stat, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return nil, errors.New("there is no name in parentheses")
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	if err != nil {
		return nil, fmt.Errorf("field 1: %q is not a pid", text[:open])
	}
	s := &Stat{PID: pid, Name: string(text[open+1 : end])}
	var parent uint64
	field := 2
	for word := range bytes.FieldsSeq(text[end+1:]) {
		field++
		var number *uint64
		switch field {
		case 3:
			if len(word) != 1 {
				return nil, fmt.Errorf("field 3: %q is not a state", word)
			}
			s.State = word[0]
		case 4:
			number = &parent
		case 7:
			number = &s.Terminal
		case 9:
			number = &s.Flags
		case 14:
			number = &s.User
		case 15:
			number = &s.System
		case 22:
			number = &s.Start
		case 24:
			number = &s.Resident
		}
		if number == nil {
			continue
		}
		if *number, err = strconv.ParseUint(string(word), 10, 63); err != nil {
			return nil, fmt.Errorf("field %d: %q is not a number", field, word)
		}
	}
	if field < 24 {
		return nil, fmt.Errorf("%d fields only", field)
	}
	s.Parent = int(parent)
	return s, nil
}
