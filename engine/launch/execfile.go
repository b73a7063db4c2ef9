package launch

import (
	"bytes"
	"encoding/binary"
	"path"
	"runtime"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/engine/rootfs"
	"golang.org/x/sys/unix"
)

// explainExec says why a program can't be executed: the errno alone does not
// tell a missing file from a missing interpreter of it, or of the wrong machine.
// The text holds the program's name in quotes; clients search for these words.
func (e *Error) explainExec(pid int) {
	e.Exec = true
	_, quoted, ok := strings.Cut(e.Text, "exec: ")
	name, err := strconv.Unquote(quoted)
	if !ok || err != nil {
		return
	}
	if !strings.Contains(name, "/") && e.Errno == unix.ENOENT {
		e.Reason = "executable file not found in $PATH"
		return
	}
	switch e.Errno {
	case unix.EISDIR: // from the look at it that create has
		e.Reason = isDirectory
		return
	case unix.ENOENT, unix.ENOEXEC, unix.EACCES, unix.ELIBBAD, unix.EINVAL:
	default:
		return
	}
	root, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(root)
	e.Reason = lookAt(root, name, e.Errno)
}

// isDirectory holds the words of EACCES, as execve(2) has it, too: Docker before 23,
// and Podman for an exec, know only those for the container's fault and not ours.
const isDirectory = "is a directory (permission denied)"

// lookAt opens the program inside the container's root and reads its head.
func lookAt(root int, name string, errno unix.Errno) string {
	head, mode, err := readHead(root, name)
	switch {
	case err != nil:
		return ""
	case mode&unix.S_IFMT == unix.S_IFDIR:
		return isDirectory
	case errno == unix.EACCES:
		if mode&0o111 == 0 {
			return "permission denied (the file is not executable: mode " + strconv.FormatUint(uint64(mode&0o7777), 8) + ")"
		}
		return ""
	}
	if line, ok := bytes.CutPrefix(head, []byte("#!")); ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		// load_script parts its words at these two; a carriage return is a letter of the
		// interpreter's name.
		fields := strings.FieldsFunc(string(line), func(r rune) bool { return r == ' ' || r == '\t' })
		if len(fields) == 0 {
			return "the script names no interpreter behind #!"
		}
		if _, _, err := readHead(root, fields[0]); err == unix.ENOENT {
			why := "no such file or directory: the script's interpreter " + strconv.Quote(fields[0]) + " is missing"
			if strings.HasSuffix(fields[0], "\r") {
				why += " (the script has DOS line ends)"
			}
			return why
		}
		return ""
	}
	if len(head) < 20 || !bytes.HasPrefix(head, []byte("\x7fELF")) {
		return "exec format error: it is neither an ELF file nor a script with #!"
	}
	var order binary.ByteOrder = binary.LittleEndian
	if head[elfData] == elfBigEndian {
		order = binary.BigEndian
	}
	machine := order.Uint16(head[18:])
	if errno == unix.ENOEXEC {
		return "exec format error: the file is built for " + machineName(machine) + ", this machine is " + runtime.GOARCH
	}
	if errno == unix.ENOENT {
		if linker := interpreterOf(head, order); linker != "" {
			if _, _, err := readHead(root, linker); err == unix.ENOENT {
				return "no such file or directory: the program's dynamic linker " + strconv.Quote(linker) + " is missing"
			}
		}
	}
	return ""
}

func readHead(root int, name string) (head []byte, mode uint32, err error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	name = strings.TrimLeft(path.Clean("/"+name), "/")
	fd, err := unix.Openat2(root, name, &how)
	if err != nil {
		return nil, 0, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, 0, err
	}
	// Opening a device or a fifo could do anything; so could reading a file of procfs,
	// which says that it has no length.
	if st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size == 0 {
		return nil, st.Mode, nil
	}
	// By the descriptor, as the name may lead to something else by now.
	data, err := rootfs.Reopen(fd)
	if err != nil {
		return nil, st.Mode, nil
	}
	defer unix.Close(data)
	head = make([]byte, 4096)
	n, _ := unix.Read(data, head)
	return head[:max(n, 0)], st.Mode, nil
}

// interpreterOf finds the PT_INTERP of an ELF file whose headers are in its head.
func interpreterOf(head []byte, order binary.ByteOrder) string {
	if head[elfClass] != elf64 || len(head) < 64 {
		return ""
	}
	at, size, count := int(order.Uint64(head[32:])), int(order.Uint16(head[54:])), int(order.Uint16(head[56:]))
	for range count {
		if at < 0 || size < 56 || at > len(head)-56 { // never by a sum, which a made-up header overflows
			return ""
		}
		if order.Uint32(head[at:]) == elfInterp {
			from, length := order.Uint64(head[at+8:]), order.Uint64(head[at+32:])
			if length == 0 || length > uint64(len(head)) || from > uint64(len(head))-length {
				return ""
			}
			return string(head[from : from+length-1])
		}
		at += size
	}
	return ""
}

// What is needed of elf(5); package debug/elf would be on the path of every
// start.
const (
	elfClass, elf64       = 4, 2
	elfData, elfBigEndian = 5, 2
	elfInterp             = 3
)

// machineName names the machines that Go runs on as Go does.
func machineName(machine uint16) string {
	switch machine {
	case 62:
		return "amd64"
	case 183:
		return "arm64"
	case 3:
		return "386"
	case 40:
		return "arm"
	case 243:
		return "riscv64"
	case 21:
		return "ppc64"
	case 22:
		return "s390x"
	case 8:
		return "mips"
	case 258:
		return "loong64"
	}
	return "ELF machine " + strconv.Itoa(int(machine))
}
