package doctor

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tryOverlay mounts an overlay of two directories in namespaces of its own. It has no
// upper directory: which file systems can hold one is another question.
func tryOverlay() error {
	mount, err := exec.LookPath("mount")
	if err != nil {
		return errForbidden
	}
	dir, err := os.MkdirTemp("", "berth-doctor-")
	if err != nil {
		return fmt.Errorf("%w (%w)", errForbidden, err)
	}
	defer os.RemoveAll(dir)
	for _, name := range [...]string{"a", "b", "merged"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return fmt.Errorf("%w (%w)", errForbidden, err)
		}
	}
	cmd := exec.Command(mount, "-n", "-t", "overlay", "overlay", "-o", "lowerdir="+filepath.Join(dir, "a")+":"+filepath.Join(dir, "b"), filepath.Join(dir, "merged"))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return errForbidden // there is no user namespace to be had
	}
	return errors.New(strings.Join(strings.Fields(string(out)), " "))
}
