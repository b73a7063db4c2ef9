package host

import (
	"os"
	"path"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
)

// Systemd is what a Plan has to know of the systemd that is to make a unit.
type Systemd struct {
	// Version decides which properties there are.
	Version int
	// Root is the cgroup of the manager itself, below which its units are.
	Root string
	// User is set for the manager of an ordinary user.
	User bool
	// Controllers are those that were delegated to a user's manager.
	Controllers []string
	// Devices is the content of /proc/devices, by which systemd knows devices.
	Devices string
	// Assumed says what of this was not asked for, but taken to be so.
	Assumed string
}

// SystemdOf completes what a manager says of itself by what files tell.
func SystemdOf(groups *cgroup.Host, version int, root string, user bool) *Systemd {
	s := &Systemd{Version: version, Root: path.Clean("/" + root), User: user}
	if text, err := os.ReadFile("/proc/devices"); err == nil {
		s.Devices = string(text)
	}
	if unified := groups.Unified(); user && unified != nil {
		if text, err := os.ReadFile(path.Join(unified.Mountpoint, s.Root, "cgroup.controllers")); err == nil {
			s.Controllers = strings.Fields(string(text))
		}
	}
	return s
}

// UserSystemd reports whether units are to be made by the manager of a user:
// for those who are not root, or are it only inside a user namespace where a
// user's bus is known.
func UserSystemd() bool {
	return os.Geteuid() != 0 || InUserNS() && (os.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" || os.Getenv("XDG_RUNTIME_DIR") != "")
}
