package launch

import (
	"errors"
	"strings"

	"github.com/berth-runtime/berth/engine/program"
	"golang.org/x/sys/unix"
)

// ErrChroot is why a container can't be made in a chroot whose / is a directory like any other: the
// mount that it is on may be shared with the host, and pivot_root(2) refuses too.
var ErrChroot = errors.New("/ is not a mount point, as in a chroot or a build root (before the chroot, mount --bind DIR DIR makes its directory one)")

// An Error is a call of a Program that failed.
type Error struct {
	Pointer string // config entry to blame, "" for none
	File    string // what Pointer leads into; "" is config.json
	Text    string // what was being done
	Reason  string // what is known beyond the errno; replaces its words
	Errno   unix.Errno
	// Exec is set when it is the user's program that could not be executed.
	Exec bool
	// chroot: the reason is ErrChroot.
	chroot bool
}

func (e *Error) Error() string {
	reason := e.Reason
	if reason == "" {
		reason = e.Errno.Error()
	}
	text := e.Text + ": " + reason
	if e.Pointer != "" {
		file := e.File
		if file == "" {
			file = "config.json"
		}
		return file + ": " + e.Pointer + ": " + text
	}
	return text
}

func (e *Error) Unwrap() error { return e.Errno }

// Is tells those errors by what they are about.
func (e *Error) Is(target error) bool { return e.chroot && target == ErrChroot }

// Explain turns a failure into an error that says what it was about, and what the
// kernel has said is the reason. The process
// waits meanwhile, so its root can still be looked into.
func Explain(p *program.Program, f program.Failure, pid int, reason string) error {
	note := program.Note{Text: "container init"}
	if f.Index < len(p.Ops) {
		note = p.Ops[f.Index].Note
	}
	e := ExplainCall(f, note, pid)
	// Of a label it says only that it does not know the option.
	if reason != "" && note.Pointer != "/linux/mountLabel" {
		e.Reason = reason + " (" + f.Errno.Error() + ")"
	}
	return e
}

// ExplainCall is Explain for a call whose note is known.
func ExplainCall(f program.Failure, note program.Note, pid int) *Error {
	e := &Error{Pointer: note.Pointer, Text: note.Text, Errno: f.Errno}
	switch {
	case f.Nr == unix.SYS_EXECVE || f.Nr == unix.SYS_FACCESSAT2 || strings.HasPrefix(note.Text, "exec: "):
		e.explainExec(pid)
	case f.Errno == unix.EPERM && f.Nr == unix.SYS_UNSHARE && filtered():
		e.Reason = f.Errno.Error() + " (the seccomp profile of the container that this is in refuses it; " + unconfine + ")"
	case f.Errno == unix.EPERM && f.Nr == unix.SYS_UNSHARE && !RootIsMount():
		e.Reason = f.Errno.Error() + " (there are no user namespaces in a chroot, see user_namespaces(7): only root can make containers here)"
	case f.Errno == unix.EMFILE && f.Nr == unix.SYS_SECCOMP:
		// The listener is a descriptor, and the limit that it meets is the process's own.
		e.Pointer, e.Reason = "/process/rlimits", f.Errno.Error()+" (RLIMIT_NOFILE leaves no descriptor for the filter's listener: raise it by a few)"
	case f.Errno == unix.EBUSY && f.Nr == unix.SYS_SECCOMP:
		e.Reason = "a container that this is in is watched by such a filter, and the kernel has one for a process (--explain-denials=false)"
	case f.Errno == unix.EPERM && strings.HasPrefix(note.Text, `mount "proc" on `):
		e.Reason = f.Errno.Error() + " (a part of /proc is covered in the container that this is in; " + unconfine + ")"
	case f.Errno == unix.EPERM && f.Nr == unix.SYS_UNSHARE:
		e.Reason = f.Errno.Error() + " (are user namespaces allowed here? see user.max_user_namespaces, and kernel.apparmor_restrict_unprivileged_userns on Ubuntu; there are none in a chroot; run berth doctor)"
	case f.Errno == unix.EINVAL && f.Nr == unix.SYS_MOUNT && note.Pointer == "/linux/rootfsPropagation" && !RootIsMount():
		e.Reason, e.chroot = ErrChroot.Error(), true
	case f.Errno == unix.EINVAL && f.Nr == unix.SYS_PIVOT_ROOT:
		e.Reason = f.Errno.Error() + " (an initramfs as the root can't be exchanged: use --no-pivot)"
	case f.Errno == unix.EAGAIN && (f.Nr == unix.SYS_CLONE || f.Nr == unix.SYS_CLONE3):
		e.Reason = f.Errno.Error() + " (a limit of processes is reached, linux.resources.pids.limit or RLIMIT_NPROC: exec needs two more for an instant)"
	case f.Errno == unix.ENOSPC && f.Nr == unix.SYS_UNSHARE:
		e.Reason = "a limit of /proc/sys/user/max_*_namespaces is reached"
	case strings.HasPrefix(note.Text, "ask for the AppArmor profile") && f.Errno == unix.EINVAL:
		e.Reason = f.Errno.Error() + " (AppArmor is not in this kernel, or not switched on)"
	case strings.HasPrefix(note.Text, "ask for the AppArmor profile") && f.Errno == unix.ENOENT:
		e.Reason = "the profile is not loaded (apparmor_parser --replace FILE loads one)"
	case f.Errno == unix.EINVAL && (strings.HasPrefix(note.Text, "ask for the SELinux label") || note.Pointer == "/linux/mountLabel"):
		e.Reason = f.Errno.Error() + " (SELinux is not in this kernel, or its policy does not know the label)"
	case f.Errno == unix.EACCES && strings.HasSuffix(note.Pointer, "/oomScoreAdj"):
		e.Reason = f.Errno.Error() + " (lowering it needs CAP_SYS_RESOURCE)"
	case f.Errno == unix.EPERM && f.Nr == unix.SYS_MOUNT_SETATTR:
		e.Reason = f.Errno.Error() + " (a user namespace can't take away ro, nosuid, nodev or noexec that the host has mounted the source with: leave out rw, suid, dev or exec)"
	case f.Errno == unix.EINVAL && f.Nr == program.Set:
		e.Reason = "the file system refuses an option (" + f.Errno.Error() + ")"
	case f.Errno == unix.ENODEV && f.Nr == unix.SYS_FSOPEN:
		e.Reason = "this kernel has no such file system (see /proc/filesystems)"
	}
	return e
}

// unconfine says how containers are made in which an ordinary user can make others.
const unconfine = "make that with docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined, podman run --security-opt seccomp=unconfined --security-opt unmask=ALL, or berth box --nest"

// filtered reports whether this process is under a seccomp filter itself.
func filtered() bool {
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	return err == nil && mode == 2
}

// RootIsMount reports whether / is a mount point here. After a chroot(2) it need not be.
func RootIsMount() bool {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, "/", 0, 0, &s); err != nil {
		return true
	}
	return s.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
