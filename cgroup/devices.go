package cgroup

import (
	"errors"
	"strings"

	"github.com/berth-runtime/berth/cgroup/device"
	"golang.org/x/sys/unix"
)

// SetDevices makes the group enforce a policy of devices: by the devices
// controller where version 1 has it, else by a BPF program on the version 2
// directory, which is replaced in one step. A device that is allowed before
// and after is not cut off in between, where the kernel can express that.
func (g *Group) SetDevices(policy device.Policy) error {
	if n := g.node("devices"); n != nil {
		return g.setDevicesV1(n, policy)
	}
	n := g.unified()
	if n == nil {
		return &Error{Op: "set the devices of", Path: g.path, Pointer: "/devices", Err: ErrNoController}
	}
	if err := g.mayChange("set the devices of", n); err != nil {
		return err
	}
	dir, err := g.open(n)
	if err == nil {
		err = policy.Attach(dir)
	}
	if err != nil {
		e := &Error{Op: "set the devices of", Path: n.full(""), Pointer: "/devices", Err: err}
		if errors.Is(err, unix.EPERM) {
			e.Hint = "BPF programs take CAP_BPF and CAP_NET_ADMIN, or CAP_SYS_ADMIN, of the host"
		}
		return e
	}
	return nil
}

func (g *Group) setDevicesV1(n *node, policy device.Policy) error {
	if err := g.mayChange("set the devices of", n); err != nil {
		return err
	}
	text, err := g.read(n, "devices.list", make([]byte, 4096))
	if err != nil {
		return err
	}
	lines, err := policy.UpdateV1(string(text))
	if err != nil {
		return err
	}
	written, err := g.writeDeviceLines(n, lines)
	if err == nil {
		return nil
	}
	return takenBack(err, func() error {
		back, err := device.UndoV1(string(text), lines[:written])
		if err == nil {
			_, err = g.writeDeviceLines(n, back)
		}
		return err
	})
}

// writeDeviceLines writes the lines in their order, up to one that is refused, and
// says how many there were before that.
func (g *Group) writeDeviceLines(n *node, lines []device.Line) (int, error) {
	dir, err := g.open(n)
	if err != nil {
		return 0, &Error{Op: "open", Path: n.full(""), Err: err}
	}
	// One open for each run of lines of the same file; the kernel takes one line a write.
	fd, opened := -1, ""
	defer func() {
		if fd >= 0 {
			unix.Close(fd)
		}
	}()
	for i, line := range lines {
		file := n.file(line.File())
		if file != opened {
			if fd >= 0 {
				unix.Close(fd)
			}
			if fd, err = openAt(dir, file, unix.O_WRONLY); err != nil {
				return i, &Error{Op: "open", Path: n.full(file), Pointer: "/devices", Err: err}
			}
			opened = file
		}
		if err := writeFD(fd, line.Text); err != nil {
			e := &Error{Op: "write", Path: n.full(file), Value: line.Text, Pointer: "/devices", Err: err}
			switch {
			case err == unix.EPERM:
				e.Hint = "a parent denies it"
			case err == unix.EINVAL && strings.HasPrefix(line.Text, "a "):
				e.Hint = "a cgroup that has children cannot change its default"
			}
			return i, e
		}
	}
	return len(lines), nil
}
