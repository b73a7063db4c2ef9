package launch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// A program of another file system whose number happens to be that of our init is a
// stranger's, and is left alone.
func TestReapLostKillsNoStranger(t *testing.T) {
	sleep, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Skipf("there is no program to execute: %v", err)
	}
	place := func() string {
		fd, err := detached(sleep)
		if errors.Is(err, unix.EPERM) {
			t.Skip("making a file system takes the right to mount")
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
	}
	stranger, ours := place(), place()
	if a, b := fileAt(stranger), fileAt(ours); a.inode != b.inode || a.device == b.device {
		t.Fatalf("the files are %v and %v", a, b)
	}
	cmd := exec.Command(stranger, "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	(&Child{image: fileAt(ours)}).reapLost()
	if err := cmd.Process.Signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if got := cmd.ProcessState.String(); got != "signal: terminated" {
		t.Errorf("the stranger ended by another hand: %s", got)
	}
}
