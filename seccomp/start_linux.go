package seccomp

import (
	"errors"
	"fmt"
	"os/exec"

	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/sys"
)

// Start starts a command under the filter, and with no_new_privs: both hold for the new process
// from its first instruction on, and for all that it starts. This process and its threads stay as
// they are. Wait for the command as ever.
//
// A thread loads the filter, starts the command and ends. So the filter has to let through what
// that takes as well: clone, execve, and what the Go runtime calls there, such as futex, mmap,
// pipe2, openat, read, close and rt_sigprocmask. [Default] does. Pdeathsig is refused, since it
// comes when the thread ends that has started the process; so are filters that notify, whose
// listener has to be served while the command is started: see [Filter.Load] and [Notify].
func (f *Filter) Start(cmd *exec.Cmd) error {
	switch {
	case f.Notify:
		return errors.New("start under a seccomp filter: it uses SCMP_ACT_NOTIFY, and would have no listener")
	case cmd.SysProcAttr != nil && cmd.SysProcAttr.Pdeathsig != 0:
		return errors.New("start under a seccomp filter: the command has Pdeathsig, which would come at once: the thread that starts it ends")
	}
	own := *f
	own.Flags &^= FlagTSync
	var err error
	sys.OnThrowawayThread(func() {
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			err = fmt.Errorf("set no_new_privs: %w", err)
			return
		}
		if _, err = own.Load(); err == nil {
			err = cmd.Start()
		}
	})
	return err
}
