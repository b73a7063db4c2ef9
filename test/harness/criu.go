package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// NeedCriu skips the test where no criu can write anything down, and returns the path of the one
// that can. As long as the test runs, that one also finds a limit that it can keep to.
func NeedCriu(t testing.TB) (path string) {
	t.Helper()
	if os.Geteuid() != 0 {
		Skip(t, "needs root")
	}
	path, err := Criu()
	if err != nil {
		Skip(t, "%v", err)
	}
	t.Cleanup(LimitCriu(t))
	return path
}

// Criu is NeedCriu for a test that can do without, and that calls LimitCriu where criu restores.
func Criu() (path string, err error) {
	path, err = workingCriu()
	if err != nil {
		return "", fmt.Errorf("needs a criu that works on this kernel (build/scripts/fetch-criu gets one): %w", err)
	}
	return path, nil
}

// workingCriu looks at the one that BERTH_CRIU names, the one of PATH, and the one that
// build/scripts/fetch-criu got.
var workingCriu = sync.OnceValues(func() (string, error) {
	if named := os.Getenv("BERTH_CRIU"); named != "" {
		return named, tryCriu(named)
	}
	inPath, err := exec.LookPath("criu")
	if err == nil {
		err = tryCriu(inPath)
	}
	if err == nil {
		return inPath, nil
	}
	cache, noCache := os.UserCacheDir()
	fetched := filepath.Join(cache, "berth-criu", "criu")
	if noCache != nil || errors.Is(unix.Access(fetched, unix.X_OK), unix.ENOENT) {
		return "", err
	}
	return fetched, tryCriu(fetched)
})

// tryCriu lets criu write a process down that has nothing to do with the engine.
func tryCriu(criu string) error {
	process := exec.Command("sleep", "100")
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := process.Start(); err != nil {
		return err
	}
	defer func() {
		process.Process.Kill()
		process.Wait()
	}()
	images, err := os.MkdirTemp("", "berth-criu-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(images)
	out, err := exec.Command(criu, "dump", "-t", strconv.Itoa(process.Process.Pid), "-D", images).CombinedOutput()
	if err == nil {
		return nil
	}
	// The first error is the reason, the others follow from it. That of the limit is none: see
	// LimitCriu.
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "Error (") && !strings.Contains(line, "RLIMIT_NOFILE") {
			return fmt.Errorf("%s dump: %s", criu, strings.TrimSpace(line))
		}
	}
	return fmt.Errorf("%s dump: %w", criu, err)
}

// LimitCriu lets criu restore where root may not raise its limits, as in some virtual machines and
// containers. It sets its limit of descriptors to fs.nr_open, does without where it can't, and then
// fails to put descriptors at the end of what it has not got. So it reads what it may have instead,
// until lift: below a /proc that something is mounted on, the kernel allows no user namespace a new
// one.
func LimitCriu(t testing.TB) (lift func()) {
	t.Helper()
	const file = "/proc/sys/fs/nr_open"
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	most, err := readUint(file)
	if err != nil {
		t.Fatal(err)
	}
	if now.Max >= most || HasCapability(t, unix.CAP_SYS_RESOURCE) {
		return func() {}
	}
	if os.Getenv(ownMounts) == "" {
		Skip(t, "needs the capability CAP_SYS_RESOURCE, or a mount namespace of the tests' own: criu can't raise its limit of descriptors to %d", most)
	}
	instead := filepath.Join(t.TempDir(), "nr_open")
	if err := os.WriteFile(instead, []byte(strconv.FormatUint(now.Max, 10)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(instead, file, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(&os.PathError{Op: "mount on", Path: file, Err: err})
	}
	return func() {
		if err := unix.Unmount(file, unix.MNT_DETACH); err != nil {
			t.Error(&os.PathError{Op: "unmount", Path: file, Err: err})
		}
	}
}

func readUint(file string) (uint64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}
