package settings

import (
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/berth-runtime/berth/internal/toml"
	"github.com/berth-runtime/berth/internal/typo"
	"golang.org/x/sys/unix"
)

// File is where the settings are.
const File = "/etc/berth/berth.toml"

// Driver is what makes the cgroups of containers.
type Driver string

// Auto is systemd where it is the init system, and cgroupfs elsewhere. It is only for containers
// whose config.json leaves the choice: an absolute cgroupsPath is always a path.
const (
	Auto     Driver = "auto"
	Cgroupfs Driver = "cgroupfs"
	Systemd  Driver = "systemd"
)

// Settings are those of a host.
type Settings struct {
	Driver Driver
	// Parent is the cgroup of containers that name no place of their own, in the notation of
	// paths: /foo/bar is foo-bar.slice under systemd. "" is the default.
	Parent string
	// Root is the directory of berth's state; "" is the default.
	Root string
	// Learn is a directory for the seccomp profiles that are recorded of containers whose
	// annotation asks for that; "" for none.
	Learn string
}

// The keys of the file.
const (
	driverKey = "cgroup-driver"
	parentKey = "cgroup-parent"
	rootKey   = "root"
	learnKey  = "seccomp-learn-directory"
)

// Read gives the host's settings: the defaults if there is no file.
func Read() (Settings, error) {
	text, err := ReadFile(File)
	if err != nil {
		return Settings{}, err
	}
	return Parse(File, text)
}

// ReadFile reads the file, or one like it; one that does not exist is empty. What another user
// may write to is refused: it says where root's containers and their state are.
func ReadFile(file string) (string, error) {
	text, err := read(file)
	if err != nil {
		return "", fmt.Errorf("read the settings: %w", &os.PathError{Op: "open", Path: file, Err: err})
	}
	return text, nil
}

// most is far more than settings have.
const most = 64 << 10

// read takes fewer system calls than os.ReadFile: one where the file does not exist.
func read(file string) (string, error) {
	var fd int
	err := unix.EINTR
	for err == unix.EINTR {
		var e error
		fd, e = unix.Open(file, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		err, _ = e.(unix.Errno)
	}
	switch err {
	case 0:
	case unix.ENOENT, unix.ENOTDIR:
		return "", nil
	default:
		return "", err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return "", err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", errors.New("it is not a regular file")
	case st.Size > most:
		return "", fmt.Errorf("it has %d bytes, and %d is the most that is read", st.Size, most)
	case st.Mode&0o002 != 0, !trusted(st.Uid):
		return "", fmt.Errorf("another user may write to it (owner %d, mode %o): chown it to root, and chmod it to 0644", st.Uid, st.Mode&0o7777)
	}
	var text []byte
	for {
		text = slices.Grow(text, 4096)
		n, err := unix.Read(fd, text[len(text):cap(text)])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return "", err
		case n == 0:
			return string(text), nil
		default:
			text = text[:len(text)+n]
		}
	}
}

// trusted reports whether an owner may decide for the caller: root, the caller, and in a user
// namespace one that it does not know, as is the host's root. All those are shown as one.
func trusted(uid uint32) bool {
	const overflow = 65534 // kernel.overflowuid, user_namespaces(7)
	if uid != overflow {
		return uid == 0 || int(uid) == os.Geteuid()
	}
	maps, err := os.ReadFile("/proc/self/uid_map")
	return err == nil && strings.Join(strings.Fields(string(maps)), " ") != "0 0 4294967295"
}

// Parse reads settings; errors name the file by what it is called.
func Parse(file, text string) (Settings, error) {
	s := Settings{Driver: Auto}
	seen := map[string]bool{}
	err := toml.Parse(text, func(key string, v toml.Value) error {
		if seen[key] {
			return errors.New("it is given twice")
		}
		seen[key] = true
		var value string
		switch key {
		case driverKey, parentKey, rootKey, learnKey:
			if err := v.String(&value); err != nil {
				return err
			}
		default:
			if meant := typo.Meant(key, []string{driverKey, parentKey, rootKey, learnKey}); meant != "" {
				return fmt.Errorf("unknown key, is it %s?", meant)
			}
			return fmt.Errorf("unknown key: the keys are %s, %s, %s and %s", driverKey, parentKey, rootKey, learnKey)
		}
		switch key {
		case driverKey:
			s.Driver = Driver(value)
			return s.Driver.check()
		case parentKey:
			s.Parent = value
			return CheckParent(value)
		}
		if key == rootKey {
			s.Root = value
		} else {
			s.Learn = value
		}
		if !path.IsAbs(value) {
			return fmt.Errorf("%q is not an absolute path", value)
		}
		return nil
	})
	if err != nil {
		return Settings{}, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func (d Driver) check() error {
	switch d {
	case Auto, Cgroupfs, Systemd:
		return nil
	}
	return fmt.Errorf("%q is none of auto, cgroupfs and systemd", string(d))
}

// CheckParent refuses what is no parent of containers. What systemd does not take for the name of a
// slice is found where the name is made.
func CheckParent(parent string) error {
	switch {
	case strings.HasSuffix(parent, ".slice"):
		return fmt.Errorf("%q is the name of a slice: write a path, as /foo/bar for foo-bar.slice", parent)
	case !path.IsAbs(parent) || path.Clean(parent) != parent:
		return fmt.Errorf("%q is not the path of a cgroup, such as /machine", parent)
	case parent == "/":
		return errors.New("the root of the hierarchy belongs to the init system: name a cgroup below it, such as /machine")
	}
	return nil
}
