package plan

import (
	"path"
	"slices"
	"strconv"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
)

// defaultDevices are the nodes that every container has (config-linux.md,
// "Default Devices"). /dev/console and /dev/ptmx are made otherwise.
var defaultDevices = [...]Device{
	{Path: "/dev/null", Type: 'c', Major: 1, Minor: 3, Mode: 0o666},
	{Path: "/dev/zero", Type: 'c', Major: 1, Minor: 5, Mode: 0o666},
	{Path: "/dev/full", Type: 'c', Major: 1, Minor: 7, Mode: 0o666},
	{Path: "/dev/random", Type: 'c', Major: 1, Minor: 8, Mode: 0o666},
	{Path: "/dev/urandom", Type: 'c', Major: 1, Minor: 9, Mode: 0o666},
	{Path: "/dev/tty", Type: 'c', Major: 5, Minor: 0, Mode: 0o666},
}

// defaultLinks are the links that programs expect in /dev (runtime-linux.md,
// "Dev symbolic links").
var defaultLinks = [...]Link{
	{Path: "/dev/fd", Target: "/proc/self/fd"},
	{Path: "/dev/stdin", Target: "/proc/self/fd/0"},
	{Path: "/dev/stdout", Target: "/proc/self/fd/1"},
	{Path: "/dev/stderr", Target: "/proc/self/fd/2"},
	{Path: "/dev/core", Target: "/proc/kcore"},
	{Path: "/dev/ptmx", Target: "pts/ptmx"},
}

// devicesOf returns the listed devices and those defaults that no entry
// replaces. A /dev that is a bind mount has another owner: nothing is created in
// it, as its owner would find our nodes there.
func devicesOf(list []specs.LinuxDevice, mounts []Mount, userNS bool) []Device {
	ownDev := !slices.ContainsFunc(mounts, func(m Mount) bool { return m.Bind && m.Destination == "/dev" })
	devices := make([]Device, 0, len(defaultDevices)+len(list))
	if ownDev {
		for _, d := range defaultDevices {
			if !slices.ContainsFunc(list, func(l specs.LinuxDevice) bool { return path.Clean(l.Path) == d.Path }) {
				d.Bind = userNS
				devices = append(devices, d)
			}
		}
	}
	for i := range list {
		l := &list[i]
		if slices.ContainsFunc(list[:i], func(o specs.LinuxDevice) bool { return path.Clean(o.Path) == path.Clean(l.Path) }) {
			continue // the path is taken, of which spec.Check warns
		}
		if userNS && path.Clean(l.Path) == "/dev/ptmx" && slices.ContainsFunc(mounts, func(m Mount) bool { return m.Destination == "/dev/pts" }) {
			continue // the host's makes terminals in the host's devpts: the link stays, see linksOf
		}
		d := Device{Path: path.Clean(l.Path), Type: l.Type[0], Major: uint32(l.Major), Minor: uint32(l.Minor),
			Mode: 0o666, Own: l.FileMode != nil || l.UID != nil || l.GID != nil,
			Bind: userNS, At: "/linux/devices/" + strconv.Itoa(i)}
		if d.Type == 'u' {
			d.Type = 'c' // mknod(1): u is an unbuffered character device
		}
		if d.Type == 'p' {
			d.Bind = false // any user can create a FIFO (mknod(2)), and the host has none to bind
		}
		if l.FileMode != nil {
			d.Mode = uint32(l.FileMode.Perm()) | uint32(*l.FileMode)&0o7000
		}
		if l.UID != nil {
			d.UID = *l.UID
		}
		if l.GID != nil {
			d.GID = *l.GID
		}
		if !ownDev && strings.HasPrefix(d.Path, "/dev/") {
			continue
		}
		devices = append(devices, d)
	}
	return devices
}

// linksOf returns the links that /dev gets: none in a /dev that is a bind mount.
func linksOf(mounts []Mount) []Link {
	if slices.ContainsFunc(mounts, func(m Mount) bool { return m.Bind && m.Destination == "/dev" }) {
		return nil
	}
	return defaultLinks[:]
}
