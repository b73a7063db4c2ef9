package mounts

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// attachLoop makes a file a block device that goes away by itself: when the
// descriptor that is returned is closed and no mount uses the device.
func attachLoop(file string, readOnly bool) (*os.File, error) {
	mode := os.O_RDWR
	if readOnly {
		mode = os.O_RDONLY
	}
	backing, err := os.OpenFile(file, mode, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	config := unix.LoopConfig{Fd: uint32(backing.Fd())}
	config.Info.Flags = unix.LO_FLAGS_AUTOCLEAR | unix.LO_FLAGS_DIRECT_IO
	if readOnly {
		config.Info.Flags |= unix.LO_FLAGS_READ_ONLY
	}
	copy(config.Info.File_name[:len(config.Info.File_name)-1], file)
	for {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("find a free loop device: %w", err)
		}
		device, err := os.OpenFile("/dev/loop"+strconv.Itoa(n), mode, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		if err == unix.EINVAL && config.Info.Flags&unix.LO_FLAGS_DIRECT_IO != 0 {
			// Not every file system below can do direct I/O.
			config.Info.Flags &^= unix.LO_FLAGS_DIRECT_IO
			err = unix.IoctlLoopConfigure(int(device.Fd()), &config)
		}
		if err == nil {
			return device, nil
		}
		device.Close()
		if !errors.Is(err, unix.EBUSY) { // someone else was faster
			return nil, fmt.Errorf("attach %s to a loop device: %w", file, err)
		}
	}
}
