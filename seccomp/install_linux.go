package seccomp

import (
	"errors"
	"fmt"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/sys"
)

// Install puts a profile in force for this whole process: all threads that there are, those that
// Go's runtime will make, and all programs that are started from now on. It sets no_new_privs,
// without which an ordinary user can't load filters, so that setuid programs give no rights any
// more. Nothing takes either off again; on an error neither holds.
//
// The profile has to allow what Go's runtime itself calls, such as clone, futex, mmap, madvise,
// rt_sigprocmask and tgkill; [Default] does. One that notifies is refused: this process would have
// to answer itself. Use [Filter.Load] on the thread that starts the program, and [Notify].
func Install(profile *specs.LinuxSeccomp) error {
	f, err := Compile(profile)
	if err != nil {
		return err
	}
	if f.Notify {
		return errors.New("install seccomp filter: the profile uses SCMP_ACT_NOTIFY, and a process can't answer itself")
	}
	f.Flags |= FlagTSync
	// TSYNC sets no_new_privs on the other threads too, if and only if it takes them all along
	// (seccomp_sync_threads): so where it fails, only the thread that tried has it, and that ends.
	sys.OnThrowawayThread(func() {
		if err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			err = fmt.Errorf("set no_new_privs: %w", err)
			return
		}
		_, err = f.Load()
	})
	return err
}
