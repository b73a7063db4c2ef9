package criu

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/berth-runtime/berth/internal/start/entry"
	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// socketFD is the descriptor of the socket in criu.
const socketFD = 3

// A Session is one criu that serves us.
type Session struct {
	idle   time.Duration
	Pid    int
	socket int
	output int // what criu says on its standard streams
	images int // directories, as criu's mount namespace has them
	work   int
	files  []uintptr
}

// Start is how criu is started.
type Start struct {
	// Program is criu's path; found in PATH where it is "".
	Program string
	// Terminal are standard streams for criu to take a terminal from (a shell
	// job); nil gives it none.
	Terminal *[3]uintptr
	// Images is the directory of the checkpoint, Work that of criu's log and other
	// files of the moment: "" for Images.
	Images, Work string
	// Root, if not "", is made a mount point of its own for criu to restore on, in
	// a mount namespace that is gone with criu.
	Root string
	// Files are passed to criu: the Session gives their numbers there.
	Files []int
	// Idle is how long criu may do nothing before it is ended; 0 is a minute.
	Idle time.Duration
}

// Open starts criu.
func Open(o *Start) (*Session, error) {
	program, err := find(o.Program)
	if err != nil {
		return nil, err
	}
	sockets, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("make the socket to criu: %w", err)
	}
	defer unix.Close(sockets[1])
	s := &Session{socket: sockets[0], output: -1, images: -1, work: -1, idle: cmp.Or(o.Idle, usualIdle)}
	if s.output, err = unix.MemfdCreate("criu-output", unix.MFD_CLOEXEC); err != nil {
		s.Close()
		return nil, fmt.Errorf("prepare criu's output: %w", err)
	}
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("open /dev/null for criu: %w", err)
	}
	defer unix.Close(null)
	s.files = []uintptr{uintptr(null), uintptr(s.output), uintptr(s.output), uintptr(sockets[1])}
	if o.Terminal != nil {
		copy(s.files, o.Terminal[:])
	}
	for _, fd := range o.Files {
		s.files = append(s.files, uintptr(fd))
	}
	if s.Pid, err = s.spawn(program, o); err != nil {
		s.Close()
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return s, nil
}

// ErrMissing is returned where criu is not installed.
var ErrMissing = errors.New("criu is not installed (Debian: apt install criu; from trixie or its backports on a kernel newer than 6.1)")

func find(program string) (string, error) {
	if program == "" {
		program = "criu"
	}
	path, err := exec.LookPath(program)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return "", ErrMissing
	}
	if err != nil {
		return "", fmt.Errorf("criu: %w", err)
	}
	return path, nil
}

// spawn starts criu, with a root in a mount namespace of its own. That namespace
// is made by a thread that is used for nothing else and ends afterwards: its
// namespaces are what the child of its fork gets.
func (s *Session) spawn(program string, o *Start) (pid int, err error) {
	spawn := func() {
		if err = s.openFolders(o); err != nil {
			return
		}
		attr := &syscall.ProcAttr{Env: os.Environ(), Files: s.files, Sys: withoutGroups()}
		// By the entry's: what criu restores are its children.
		pid, err = entry.ForkExec(program, []string{"criu", "swrk", strconv.Itoa(socketFD)}, attr)
	}
	if o.Root == "" {
		spawn()
		return pid, err
	}
	sys.OnThrowawayThread(func() {
		if err = ownRoot(o.Root); err == nil {
			spawn()
		}
	})
	return pid, err
}

// withoutGroups starts criu in none of our caller's further groups. It sets the groups of a process
// that had some, and leaves one that had none in its own: that would be let out to files of theirs.
func withoutGroups() *syscall.SysProcAttr {
	groups, err := os.Getgroups()
	if os.Geteuid() != 0 || err == nil && len(groups) == 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}}
}

// openFolders opens what criu changes to by way of our descriptors. It mounts
// things there, which the kernel allows only in the mount namespace that the
// directory was opened in.
func (s *Session) openFolders(o *Start) (err error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	if s.images, err = unix.Open(o.Images, flags, 0); err != nil {
		return &os.PathError{Op: "open", Path: o.Images, Err: err}
	}
	if o.Work == "" {
		return nil
	}
	if s.work, err = unix.Open(o.Work, flags, 0); err != nil {
		return &os.PathError{Op: "open", Path: o.Work, Err: err}
	}
	return nil
}

// ownRoot gives the calling thread a mount namespace in which a directory is a
// mount point, as criu wants the root that it restores a mount namespace on. Like
// the container's was, it is a slave of the host's mount: criu takes that over.
func ownRoot(root string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("keep its mounts from the host: %w", err)
	}
	if err := unix.Mount(root, root, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s on itself: %w", root, err)
	}
	return nil
}

// Pass is the number that Start.Files[i] has in criu.
func (s *Session) Pass(i int) int { return socketFD + 1 + i }

// Close ends criu, and waits for it. What it has restored stays.
func (s *Session) Close() {
	if s.socket >= 0 {
		unix.Close(s.socket)
		s.socket = -1
	}
	if s.Pid > 0 {
		// Without its socket criu has nothing left to do, whatever it was doing: it
		// lets go of the processes and ends.
		s.end()
		s.Pid = 0
	}
	for _, fd := range []*int{&s.output, &s.images, &s.work} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// Version asks for criu's version.
func (s *Session) Version() (Version, error) {
	r, err := s.ask(version, nil, nil)
	if err != nil {
		return Version{}, err
	}
	return r.Version, nil
}

// A Features says what criu and the kernel can do together.
type Features struct{ MemoryTracking, LazyPages bool }

// Features asks for them.
func (s *Session) Features() (Features, error) {
	r, err := s.ask(checkFeature, nil, nil)
	if err != nil {
		return Features{}, err
	}
	return r.Features, nil
}

// A Handler hears how far criu has come. fd is a descriptor that came along, or
// -1; it is closed afterwards. Returning an error ends what criu is doing.
type Handler func(n Notification, fd int) error

// Do lets criu do a task. It returns the pid of a restored process.
func (s *Session) Do(t Task, o *Options, handle Handler) (int, error) {
	told := *o
	told.images, told.work = s.images, max(0, s.work)
	r, err := s.ask(t, &told, handle)
	if err != nil {
		return 0, err
	}
	return r.Pid, nil
}

// ask sends a request and serves criu until it responds.
func (s *Session) ask(t Task, o *Options, handle Handler) (*Response, error) {
	if err := s.send(request(t, o)); err != nil {
		return nil, s.lost(t, err)
	}
	var handled error
	for {
		var r *Response
		fd := -1
		err := s.await(o)
		if err == nil {
			r, fd, err = s.receive()
		}
		if err != nil {
			return nil, s.lost(t, err)
		}
		if r.Task == notification {
			if handle != nil && handled == nil {
				handled = handle(r.Notify, fd)
			}
			if fd >= 0 {
				unix.Close(fd)
			}
			if err := s.send(answer(handled == nil)); err != nil {
				return nil, errors.Join(handled, s.lost(t, err))
			}
			continue
		}
		if fd >= 0 {
			unix.Close(fd)
		}
		switch {
		case handled != nil:
			return nil, handled
		case r.Task != t || !r.Success:
			return nil, &Refusal{Task: t, Errno: syscall.Errno(max(r.Errno, -r.Errno)), Message: r.Message, Output: s.said()}
		}
		return r, nil
	}
}

// A Refusal is what criu says when it could not do a task.
type Refusal struct {
	Task    Task
	Errno   syscall.Errno // 0 where criu names none
	Message string
	Output  string // the end of what criu has said on its standard streams
}

func (e *Refusal) Error() string {
	text := "criu could not " + e.Task.String()
	if e.Errno != 0 {
		text += ": " + e.Errno.Error()
	}
	if said, ok := errorLine(e.Message); ok {
		text += ": " + said
	} else if said := strings.TrimSpace(e.Message); said != "" && !strings.Contains(said, "FAILED.") {
		text += ": " + said
	}
	if e.Output != "" {
		text += " (it said: " + e.Output + ")"
	}
	return text
}

// lost explains a conversation that ended before its time.
func (s *Session) lost(t Task, err error) error {
	said := s.said()
	if said != "" {
		said = " (it said: " + said + ")"
	}
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("criu ended in the middle of %s%s", t, said)
	}
	return fmt.Errorf("talk to criu about %s: %w%s", t, err, said)
}

// said is the last line that criu has said on its standard streams.
func (s *Session) said() string {
	const most = 512
	size, err := unix.Seek(s.output, 0, io.SeekEnd)
	if err != nil {
		return ""
	}
	buf := make([]byte, most)
	n, err := unix.Pread(s.output, buf, max(0, size-most))
	if err != nil {
		return ""
	}
	text := strings.TrimSpace(string(buf[:n]))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

func (s *Session) send(data []byte) error {
	for {
		err := unix.Sendto(s.socket, data, unix.MSG_NOSIGNAL, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// receive reads one response, with the descriptor that came along or -1.
func (s *Session) receive() (*Response, int, error) {
	buf := make([]byte, 64<<10) // criu's own limit for a message is 40 KiB
	var control [64]byte
	var n, oobn, flags int
	var err error
	for {
		n, oobn, flags, _, err = unix.Recvmsg(s.socket, buf, control[:], unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	switch {
	case err == unix.ECONNRESET, err == nil && n == 0:
		return nil, -1, io.EOF
	case err != nil:
		return nil, -1, err
	}
	fd := sys.ReceivedDescriptor(control[:oobn])
	if flags&unix.MSG_TRUNC != 0 {
		err = errMessage
	}
	var r *Response
	if err == nil {
		r, err = ParseResponse(buf[:n])
	}
	if err != nil && fd >= 0 {
		unix.Close(fd)
		fd = -1
	}
	return r, fd, err
}
