package doctor

import (
	"context"
	"strconv"
	"time"

	manager "github.com/berth-runtime/berth/cgroup/systemd"
	"golang.org/x/sys/unix"
)

// systemd looks for the manager itself, and for what an ordinary user's needs to
// outlive their session.
func systemd(m *Machine) []Finding {
	if !m.hasSystemd() {
		return []Finding{{Check: "systemd", For: Everyone, State: Note, Found: "does not run here",
			Without: "--systemd-cgroup can't be used; without it nothing is missing"}}
	}
	findings := []Finding{{Check: "systemd", For: Everyone, Found: "runs"}}
	if m.UID == 0 {
		return findings
	}
	linger := Finding{Check: "linger", For: User, Found: "on"}
	if !m.exists("var/lib/systemd/linger/" + m.user()) {
		linger.State, linger.Found = Gap, "off"
		linger.Without = "systemd ends the user's containers when the last session ends"
		linger.Fix = []Fix{m.sudo("loginctl enable-linger " + m.user())}
	}
	return append(findings, linger, runtimeDir(m))
}

// runtimeDir looks at where an ordinary user's state and bus are.
func runtimeDir(m *Machine) Finding {
	f := Finding{Check: "XDG_RUNTIME_DIR", For: User, Found: m.Env("XDG_RUNTIME_DIR")}
	var st unix.Stat_t
	switch {
	case f.Found == "":
		f.Found = "not set"
	case unix.Stat(m.path(f.Found), &st) != nil:
		f.Found += " does not exist"
	case int(st.Uid) != m.UID && m.Root == "":
		f.Found += " belongs to another user"
	default:
		return f
	}
	f.State, f.Without = Gap, "container state goes to the temporary directory, and systemd can't be reached"
	f.Fix = []Fix{m.sudo("loginctl enable-linger " + m.user()), {Run: "export XDG_RUNTIME_DIR=/run/user/" + strconv.Itoa(m.UID)}}
	return f
}

// bus asks the systemd that would make the caller's units who it is.
func bus(m *Machine) []Finding {
	if !m.hasSystemd() {
		return nil
	}
	f := Finding{Check: "bus", For: m.Kind()}
	bus := manager.New(manager.Options{User: m.UID != 0, Timeout: 5 * time.Second})
	defer bus.Close()
	version, err := bus.Version(context.Background())
	if err == nil {
		f.Found = "systemd " + strconv.Itoa(version) + " answers"
		return []Finding{f}
	}
	f.State, f.Found, f.Without = Gap, err.Error(), "--systemd-cgroup can't be used"
	if m.UID == 0 {
		f.Fix = []Fix{{Run: "systemctl start dbus.socket"}}
	} else {
		f.Fix = []Fix{m.install("dbus-user-session", "dbus-daemon", "dbus", "dbus-1", "dbus"), {Run: "systemctl --user start dbus.socket"}}
	}
	return []Finding{f}
}
