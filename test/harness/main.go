package harness

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ownMounts tells the second run of the test program that it already has its own mount namespace.
const ownMounts = "BERTH_TEST_OWN_MOUNTS"

// session is the directory of this run of the test program: the binaries, and below it the
// directory of each test.
var session string

// Main runs the tests of a package; it does not return.
func Main(m *testing.M) {
	OwnMounts()
	os.Exit(run(m))
}

// OwnMounts runs the test program of root in a mount namespace of its own: it returns in there
// only. For a TestMain that does not call Main.
func OwnMounts() {
	if os.Geteuid() != 0 {
		return
	}
	if os.Getenv(ownMounts) == "" {
		os.Exit(againInOwnMounts())
	}
	// First private, to be parted from the host's mounts; then shared, since that is what a host
	// with systemd looks like: an engine that lets a container's mounts propagate is caught by it.
	for _, propagation := range []uintptr{unix.MS_PRIVATE, unix.MS_SHARED} {
		if err := unix.Mount("", "/", "", unix.MS_REC|propagation, ""); err != nil {
			fmt.Fprintln(os.Stderr, "change the propagation of /:", err)
			os.Exit(1)
		}
	}
}

// againInOwnMounts runs this program once more in a new mount namespace. That has to happen in
// clone: a Go program has several threads, and unshare(CLONE_NEWNS) is refused to, or changes only,
// one of them.
func againInOwnMounts() int {
	// Pdeathsig is about the thread that clones, not the process.
	runtime.LockOSThread()
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), ownMounts+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode()
	default:
		fmt.Fprintln(os.Stderr, "run the tests in a mount namespace of their own:", err)
		return 1
	}
}

func run(m *testing.M) int {
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, "prepare the tests:", err)
		return 1
	}
	defer os.RemoveAll(session)
	code := m.Run()
	printSkips()
	return code
}

func prepare() (err error) {
	// What the shell that runs the tests has open belongs to no test: criu would find it in the
	// processes that it is tried on.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil && !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) {
		return os.NewSyscallError("close_range", err) // before Linux 5.11 it can't mark them
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	if session, err = os.MkdirTemp("", "berth-test-"); err != nil {
		return err
	}
	// Ids of user namespaces have to get through to the root file systems below.
	return os.Chmod(session, 0o755)
}
