package box

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	specs "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Options are what a box was asked for.
type Options struct {
	Command []string
	// Rootfs is a directory to use as the root; "" for the host's own.
	Rootfs string
	// Image is what the image says that Rootfs was made of; nil for none.
	Image *Image
	// Workdir is where the command begins; "" for the current directory, or the root of
	// a Rootfs.
	Workdir string
	User    string // USER[:GROUP]; "" for the caller
	Env     []string
	Binds   []Bind
	Devices []Device
	Show    []string // secrets that are not to be hidden, by their real paths
	Tmp     []string // directories to be empty, in memory
	// TmpSize is the most that one of them may hold, in bytes.
	TmpSize map[string]int64
	HostNet bool
	// Resolver is the file to be seen as /etc/resolv.conf with a network that is neither the
	// host's nor none.
	Resolver string
	// Seccomp is the profile; nil for none.
	Seccomp  *specs.LinuxSeccomp
	Terminal bool
	Nest     bool // boxes can be made in it; of ordinary users only

	// KeepsChanges is set where what is written may be brought to the machine.
	KeepsChanges bool
	// Hidden are the secrets that Spec has hidden. Of these, Blanked are files that the box has
	// to see without the passwords in them.
	Hidden, Blanked []string

	mounted []specs.Mount // as Spec has made them

	Hostname string // "" for the host's
	Rlimits  []specs.POSIXRlimit
	// CapAdd and CapDrop change what root keeps in the box, by full names.
	CapAdd, CapDrop []string

	Memory  int64   // bytes, 0 for no limit
	CPUs    float64 // 0 for no limit
	CPUSet  string  // the processors that it may run on, such as 0-3,5; "" for all
	Pids    int64   // 0 for no limit
	IO      []Throttle
	Timeout time.Duration // 0 for none
}

// An Image is what an image has beside its files.
type Image struct {
	Env  []string
	User string // USER[:GROUP], "" for root
	Dir  string // where its command begins, "" for its root
}

// Limited reports whether the box needs a cgroup.
func (o *Options) Limited() bool {
	return o.Memory != 0 || o.CPUs != 0 || o.Pids != 0 || o.CPUSet != "" || len(o.IO) > 0
}

// A Bind shows a path of the host in the box.
type Bind struct {
	Source, Path string // both absolute
	Writable     bool
	Option       string // by which it was asked for, "" for none
}

// ParseBind reads PATH, or PATH:PLACE where it is to be seen elsewhere.
func ParseBind(text string, writable bool) (Bind, error) {
	source, place, elsewhere := strings.Cut(text, ":")
	if source == "" || elsewhere && !filepath.IsAbs(place) {
		return Bind{}, fmt.Errorf("%q is neither a path nor PATH:PLACE with an absolute PLACE", text)
	}
	source, err := Abs(source)
	if err != nil {
		return Bind{}, err
	}
	if !elsewhere {
		place = source
	}
	place = filepath.Clean(place)
	if place == "/" || !elsewhere && realPath(source) == "/" {
		return Bind{}, fmt.Errorf("%q: the root of the box can't be replaced like this (see --rootfs)", text)
	}
	if _, err := os.Stat(source); err != nil {
		return Bind{}, err
	}
	return Bind{Source: source, Path: place, Writable: writable}, nil
}

// A Throttle limits what goes to and from one block device.
type Throttle struct {
	Major, Minor int64
	// Rates by the words rbps, wbps, riops and wiops.
	Rates map[string]uint64
}

// ParseThrottle reads DEV:rbps=N,wbps=N,riops=N,wiops=N. DEV is MAJOR:MINOR, a
// device, or a path on the device that is meant. size reads a number with a unit.
func ParseThrottle(text string, size func(string) (int64, error)) (Throttle, error) {
	end := strings.LastIndexByte(text, ':')
	if end <= 0 {
		return Throttle{}, fmt.Errorf("%q is not DEV:rbps=N,wbps=N,riops=N,wiops=N", text)
	}
	t := Throttle{Rates: map[string]uint64{}}
	var err error
	if t.Major, t.Minor, err = deviceOf(text[:end]); err != nil {
		return Throttle{}, err
	}
	for field := range strings.SplitSeq(text[end+1:], ",") {
		word, value, _ := strings.Cut(field, "=")
		switch word {
		case "rbps", "wbps", "riops", "wiops":
		default:
			return Throttle{}, fmt.Errorf("%q is none of rbps=, wbps=, riops= and wiops=", field)
		}
		n, err := size(value)
		if err != nil {
			return Throttle{}, err
		}
		if n <= 0 {
			return Throttle{}, fmt.Errorf("%q: a rate is more than nothing", field)
		}
		t.Rates[word] = uint64(n)
	}
	return t, nil
}

// deviceOf finds the number of a block device.
func deviceOf(name string) (major, minor int64, err error) {
	if a, b, ok := strings.Cut(name, ":"); ok {
		major, err1 := strconv.ParseInt(a, 10, 32)
		minor, err2 := strconv.ParseInt(b, 10, 32)
		if err1 != nil || err2 != nil || major < 0 || minor < 0 {
			return 0, 0, fmt.Errorf("%q is not a device number such as 8:0", name)
		}
		return major, minor, nil
	}
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		return 0, 0, &os.PathError{Op: "stat", Path: name, Err: err}
	}
	dev := st.Dev
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFBLK:
		dev = st.Rdev
	case unix.S_IFCHR:
		return 0, 0, fmt.Errorf("%s is a character device; only block devices can be throttled", name)
	}
	if unix.Major(dev) == 0 {
		return 0, 0, fmt.Errorf("%s is on no block device", name)
	}
	return wholeDisk(int64(unix.Major(dev)), int64(unix.Minor(dev)))
}

// wholeDisk turns to the disk of a partition, as the kernel throttles disks only.
func wholeDisk(major, minor int64) (int64, int64, error) {
	dir := fmt.Sprintf("/sys/dev/block/%d:%d", major, minor)
	if _, err := os.Stat(dir + "/partition"); err != nil {
		return major, minor, nil
	}
	target, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return 0, 0, err
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(target), "dev"))
	if err != nil {
		return 0, 0, err
	}
	return deviceOf(strings.TrimSpace(string(text)))
}
