package argname

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/caps"
)

// A value is a number of the kernel's headers with its name. A flag may have several bits.
type value struct {
	is   uint64
	name string
}

// A kind is how an argument is read.
type kind uint8

const (
	plain    kind = iota // as a number
	one                  // one of the values
	flags                // any of the values, joined by |
	mode                 // of a file, in octal
	nodeMode             // with the type of the file
	device               // makedev(1, 3)
	signal
	capability
	openFlags
	cloneFlags // with the signal of its end
)

// Arg names an argument of a call, by the call's name and with all of its arguments. It is "" where
// the number says as much as any name.
func Arg(call string, args []uint64, i int) string {
	for p := range parameters {
		if q := &parameters[p]; q.index == i && q.call == call && (q.option == 0 || q.option == args[0]) && (!q.depends || len(args) > q.first && q.on == args[q.first]) {
			return text(q.kind, q.values, args[i])
		}
	}
	return ""
}

// Word names a word of the structure that an argument points to.
func Word(call string, i, word int, v uint64) string {
	for p := range members {
		if m := &members[p]; m.index == i && m.word == word && m.call == call {
			return text(m.kind, m.values, v)
		}
	}
	return ""
}

func text(k kind, values []value, v uint64) string {
	switch k {
	case one:
		for _, n := range values {
			if n.is == v {
				return n.name
			}
		}
	case flags:
		return join(values, v)
	case mode:
		return octal(v)
	case nodeMode:
		for _, n := range fileTypes {
			if v&unix.S_IFMT == n.is {
				return n.name + "|" + octal(v&^unix.S_IFMT)
			}
		}
		return octal(v)
	case device:
		return "makedev(" + strconv.FormatUint(uint64(unix.Major(v)), 10) + ", " + strconv.FormatUint(uint64(unix.Minor(v)), 10) + ")"
	case signal:
		return signalName(v)
	case capability:
		if v <= uint64(caps.Last) {
			return caps.Name(int(v))
		}
	case openFlags:
		return open(v)
	case cloneFlags:
		s := join(namespaces, v&^0xff)
		switch end := signalName(v & 0xff); {
		case end == "":
			return s
		case s == "0":
			return end
		default:
			return s + "|" + end
		}
	}
	return ""
}

// join names the flags in a number, and has the bits that have no name at the end.
func join(values []value, v uint64) string {
	if v == 0 {
		return "0"
	}
	var names []string
	for _, n := range values {
		if v&n.is == n.is {
			names = append(names, n.name)
			v &^= n.is
		}
	}
	if v != 0 {
		names = append(names, "0x"+strconv.FormatUint(v, 16))
	}
	return strings.Join(names, "|")
}

// open names the flags of open(2), whose two lowest bits are a number.
func open(v uint64) string {
	rest := join(opens, v&^unix.O_ACCMODE)
	access := [...]string{"O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE"}[v&unix.O_ACCMODE]
	switch {
	case v&unix.O_PATH != 0 && v&unix.O_ACCMODE == 0: // which opens neither for reading nor for writing
		return rest
	case rest == "0":
		return access
	}
	return access + "|" + rest
}

func octal(v uint64) string {
	if v == 0 {
		return "0"
	}
	return "0" + strconv.FormatUint(v, 8)
}

func signalName(v uint64) string {
	if v == 0 || v > 64 {
		return ""
	}
	return unix.SignalName(unix.Signal(v)) // "" for those of real time
}
