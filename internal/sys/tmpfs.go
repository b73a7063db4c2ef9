package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// NewTmpfs makes a file system in memory that is mounted nowhere, with these MOUNT_ATTR flags. It
// takes the right to mount, and is gone with its last descriptor and copy.
func NewTmpfs(attributes int) (fd int, err error) {
	fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, os.NewSyscallError("fsconfig", err)
	}
	fd, err = unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attributes)
	return fd, os.NewSyscallError("fsmount", err)
}
