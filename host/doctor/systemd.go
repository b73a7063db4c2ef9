package doctor

import (
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// systemd looks for the manager itself, and for what an ordinary user's needs to
// outlive his session.
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
	f.State, f.Without = Gap, "containers are kept in the folder for temporary files, and systemd can't be reached"
	f.Fix = []Fix{m.sudo("loginctl enable-linger " + m.user()), {Run: "export XDG_RUNTIME_DIR=/run/user/" + strconv.Itoa(m.UID)}}
	return f
}

// bus tries to connect to where systemd listens.
func bus(m *Machine) []Finding {
	if !m.hasSystemd() {
		return nil
	}
	f := Finding{Check: "bus", For: m.Kind()}
	var tried []string
	for _, path := range m.buses() {
		err := connect(path)
		if err == nil {
			f.Found = path + " answers"
			return []Finding{f}
		}
		tried = append(tried, path+": "+err.Error())
	}
	f.State, f.Without = Gap, "--systemd-cgroup can't be used"
	f.Found = strings.Join(tried, "; ")
	if len(tried) == 0 {
		f.Found = "its address is not known"
	}
	if m.UID == 0 {
		f.Fix = []Fix{{Run: "systemctl start dbus.socket"}}
	} else {
		f.Fix = []Fix{m.install("dbus-user-session", "dbus-daemon", "dbus", "dbus-1", "dbus"), {Run: "systemctl --user start dbus.socket"}}
	}
	return []Finding{f}
}

// buses are the sockets where systemd can be reached, as cgroup/systemd tries
// them.
func (m *Machine) buses() []string {
	if m.UID == 0 {
		return []string{"/run/systemd/private", "/run/dbus/system_bus_socket"}
	}
	var list []string
	for address := range strings.SplitSeq(m.Env("DBUS_SESSION_BUS_ADDRESS"), ";") {
		if path, ok := strings.CutPrefix(address, "unix:path="); ok {
			path, _, _ = strings.Cut(path, ",")
			list = append(list, path)
		}
	}
	if dir := m.Env("XDG_RUNTIME_DIR"); dir != "" {
		list = append(list, dir+"/bus", dir+"/systemd/private")
	}
	return list
}

func connect(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); err != unix.EAGAIN { // its backlog is full: somebody listens
		return err
	}
	return nil
}
