package launch

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/berth-runtime/berth/engine/program"
	"github.com/berth-runtime/berth/internal/sys"
	"golang.org/x/sys/unix"
)

// load puts the image of a Program where it can be executed and not be written to. It holds
// nothing of the host: a container that gets at its /proc/PID/exe has what it runs anyway
// (CVE-2019-5736).
func load(p *program.Program) (int, error) {
	image, err := p.Image()
	if err != nil {
		return -1, err
	}
	fd, err := sealed(image)
	if errors.Is(err, unix.EACCES) {
		// vm.memfd_noexec is 2, which forbids the execution of memfds.
		if file, cause := detached(image); cause == nil {
			fd, err = file, nil
		} else {
			err = fmt.Errorf("%w (vm.memfd_noexec is 2, and the way around it failed: %w)", err, cause)
		}
	}
	if err != nil {
		return -1, fmt.Errorf("make the container's init: %w", err)
	}
	return fd, nil
}

// imageName is the init's argv[0], and what the kernel shows of its executable behind
// "/memfd:".
const imageName = "berth-init"

// sealed puts an image into a sealed memfd.
func sealed(image []byte) (int, error) {
	// MFD_EXEC is needed where vm.memfd_noexec is 1, and unknown before Linux 6.3.
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(imageName, flags|unix.MFD_EXEC)
	if err == unix.EINVAL {
		fd, err = unix.MemfdCreate(imageName, flags)
	}
	if err != nil {
		return -1, os.NewSyscallError("memfd_create", err)
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if err = fill(fd, image); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
		err = os.NewSyscallError("fcntl F_ADD_SEALS", err)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func fill(fd int, image []byte) error {
	n, err := unix.Write(fd, image)
	if err == nil && n < len(image) {
		err = io.ErrShortWrite
	}
	return os.NewSyscallError("write", err)
}

// detached puts an image into a file of a file system in memory that is mounted
// nowhere, and read-only by the time that any other process can open it. It takes the
// right to mount. To others the file looks as the memfd would: its name is gone.
func detached(image []byte) (int, error) {
	mount, err := sys.NewTmpfs(unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return -1, err
	}
	defer unix.Close(mount)
	const name = "memfd:" + imageName
	file, err := unix.Openat(mount, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o500)
	if err != nil {
		return -1, err
	}
	err = fill(file, image)
	unix.Close(file) // what is open for writing can't be executed (ETXTBSY)
	if err != nil {
		return -1, err
	}
	fd, err := unix.Openat(mount, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err = unix.Unlinkat(mount, name, 0); err == nil {
		// Kernels that know vm.memfd_noexec have mount_setattr.
		err = unix.MountSetattr(mount, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
