package box

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"github.com/berth-runtime/berth/internal/ptr"
)

// A Device of the host can be used in the box.
type Device struct {
	Source, Path string // both absolute
	Kind         string // c or b
	Major, Minor int64
	Access       string // of r, w and m
}

// ParseDevice reads PATH[:PLACE[:rwm]].
func ParseDevice(text string) (Device, error) {
	fields := strings.Split(text, ":")
	d := Device{Source: fields[0], Path: fields[0], Access: "rwm"}
	if len(fields) > 3 || !filepath.IsAbs(d.Source) {
		return d, fmt.Errorf("%q is not /dev/NAME[:PLACE[:rwm]]", text)
	}
	if len(fields) == 2 && !filepath.IsAbs(fields[1]) { // as docker reads it
		fields = []string{fields[0], fields[0], fields[1]}
	}
	if len(fields) > 1 {
		d.Path = filepath.Clean(fields[1])
	}
	if len(fields) > 2 {
		d.Access = fields[2]
	}
	if !filepath.IsAbs(d.Path) || d.Access == "" || strings.Trim(d.Access, "rwm") != "" {
		return d, fmt.Errorf("%q is not /dev/NAME[:PLACE[:rwm]]", text)
	}
	var st unix.Stat_t
	if err := unix.Stat(d.Source, &st); err != nil {
		return d, &os.PathError{Op: "stat", Path: d.Source, Err: err}
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
		d.Kind = "c"
	case unix.S_IFBLK:
		d.Kind = "b"
	default:
		return d, fmt.Errorf("%s is no device", d.Source)
	}
	d.Source = realPath(d.Source)
	d.Major, d.Minor = int64(unix.Major(st.Rdev)), int64(unix.Minor(st.Rdev))
	return d, nil
}

// mount is a bind mount on which a device can be opened.
func (d *Device) mount() specs.Mount {
	return specs.Mount{Destination: d.Path, Type: "bind", Source: d.Source, Options: []string{"bind", "nosuid", "noexec"}}
}

// rule lets the box's cgroup use it.
func (d *Device) rule() specs.LinuxDeviceCgroup {
	return specs.LinuxDeviceCgroup{Allow: true, Type: d.Kind, Major: ptr.To(d.Major), Minor: ptr.To(d.Minor), Access: d.Access}
}
