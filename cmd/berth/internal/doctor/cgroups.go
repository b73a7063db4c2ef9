package doctor

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-runtime/berth/cgroup"
)

// wanted are the controllers that containers are commonly limited by, in the
// order in which systemd names them.
var wanted = [...]string{"cpu", "cpuset", "io", "memory", "pids"}

// delegateFile is systemd's way to hand controllers to the managers of users.
const delegateFile = "/etc/systemd/system/user@.service.d/delegate.conf"

func (m *Machine) hasSystemd() bool { return m.exists("run/systemd/system") }

func cgroupLayout(m *Machine) []Finding {
	f := Finding{Check: "cgroup layout", For: Everyone}
	h, err := cgroup.DetectIn(m.Root)
	if err != nil {
		f.State, f.Found, f.Without = Gap, err.Error(), "no container can be limited or frozen"
		return []Finding{f}
	}
	f.Found = h.Mode().String()
	switch h.Mode() {
	case cgroup.None:
		f.State, f.Found, f.Without = Gap, "no cgroup file system is mounted", "no container can be limited or frozen"
		f.Fix = []Fix{m.sudo("mount -t cgroup2 cgroup2 /sys/fs/cgroup")}
	case cgroup.Legacy, cgroup.Hybrid:
		f.For = Root
		user := Finding{Check: f.Check, For: User, State: Gap, Found: f.Found + ": controllers are on cgroup v1, which can't be delegated to users",
			Without: "users' containers have no limits, and can't be paused"}
		if m.hasSystemd() {
			user.Fix = m.bootOption("systemd.unified_cgroup_hierarchy=1")
		} else {
			user.Fix = []Fix{{Run: "let the init system mount cgroup2 alone on /sys/fs/cgroup, and boot anew"}}
		}
		return append([]Finding{f}, append(readOnly(h), user)...)
	}
	return append([]Finding{f}, readOnly(h)...)
}

// readOnly finds what an outer container shows without letting it be changed.
func readOnly(h *cgroup.Host) []Finding {
	for _, hierarchy := range h.Hierarchies() {
		if hierarchy.ReadOnly {
			return []Finding{{Check: "cgroup mounts", For: Everyone, State: Gap, Found: hierarchy.Mountpoint + " is read-only",
				Without: "no container can have a cgroup of its own", Fix: []Fix{{Run: "run this container itself with writable cgroups (docker run --privileged --cgroupns=private)"}}}}
		}
	}
	return nil
}

// controllers looks for those that the kernel has, wherever they live.
func controllers(m *Machine) []Finding {
	h, err := cgroup.DetectIn(m.Root)
	if err != nil || h.Mode() == cgroup.None {
		return nil
	}
	var present, missing []string
	for _, name := range wanted {
		if h.Controller(name) != nil || name == "io" && h.Controller("blkio") != nil {
			present = append(present, name)
		} else {
			missing = append(missing, name)
		}
	}
	f := Finding{Check: "cgroup controllers", For: Root, Found: strings.Join(present, " ")}
	if len(missing) > 0 {
		f.State, f.Found = Gap, f.Found+"; missing: "+strings.Join(missing, " ")
		f.Without = "limits of these are refused"
		for _, name := range missing {
			f.Fix = append(f.Fix, m.enable(name)...)
		}
	}
	findings := []Finding{f}
	if h.Controller("memory") != nil && !m.countsSwap(h) {
		findings = append(findings, Finding{Check: "swap accounting", For: Root, State: Note, Found: "off",
			Without: "limits of swap are refused", Fix: m.bootOption("swapaccount=1")})
	}
	return findings
}

// enable says how a controller comes back that /proc/cgroups knows as disabled.
func (m *Machine) enable(controller string) []Fix {
	if controller == "io" {
		controller = "blkio" // its name there, on version 2 too
	}
	for line := range strings.Lines(m.read("proc/cgroups")) {
		if fields := strings.Fields(line); len(fields) == 4 && fields[0] == controller && fields[3] == "0" {
			return m.bootOption("cgroup_enable=" + controller)
		}
	}
	return []Fix{{Run: "use a kernel with the cgroup controller " + controller}}
}

func (m *Machine) countsSwap(h *cgroup.Host) bool {
	dir, file := h.Controller("memory"), "memory.memsw.limit_in_bytes"
	if dir.Version == 2 {
		file = "memory.swap.max" // the root has none
	}
	for _, pattern := range [...]string{file, "*/" + file, "*/*/" + file} {
		if found, err := filepath.Glob(m.path(filepath.Join(dir.Mountpoint, pattern))); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// delegation looks for the controllers that systemd hands to the managers of
// users: to the caller's own, or for root to any.
func delegation(m *Machine) []Finding {
	h, err := cgroup.DetectIn(m.Root)
	if err != nil || h.Mode() != cgroup.Unified || !m.hasSystemd() {
		return nil
	}
	f := Finding{Check: "delegated controllers", For: User}
	managers := filepath.Join(h.Unified().Mountpoint, "user.slice", "user-*.slice", "user@*.service")
	if m.UID != 0 {
		uid := strconv.Itoa(m.UID)
		managers = filepath.Join(h.Unified().Mountpoint, "user.slice", "user-"+uid+".slice", "user@"+uid+".service")
	}
	found, _ := filepath.Glob(m.path(managers))
	if len(found) == 0 {
		if m.UID == 0 {
			f.State, f.Found = Note, "no user is logged in to look at"
			return []Finding{f}
		}
		f.State, f.Found, f.Without = Gap, "systemd runs no manager for this user", "users' containers have no limits"
		f.Fix = []Fix{m.sudo("loginctl enable-linger " + m.user())}
		return []Finding{f}
	}
	service := filepath.Base(found[0])
	relative, _ := filepath.Rel(m.path("/"), found[0])
	have := strings.Fields(m.read(filepath.Join(relative, "cgroup.controllers")))
	var missing []string
	for _, name := range wanted {
		if !slices.Contains(have, name) {
			missing = append(missing, name)
		}
	}
	f.Found = service + " has " + strings.Join(have, " ")
	if len(have) == 0 {
		f.Found = service + " has none"
	}
	if len(missing) > 0 {
		f.State, f.Without = Gap, "limits of "+strings.Join(missing, ", ")+" are refused to users' containers"
		f.Fix = []Fix{dropIn(delegateFile, "[Service]\nDelegate="+strings.Join(wanted[:], " ")+"\n"), m.sudo("systemctl daemon-reload"),
			m.sudo("systemctl restart " + service + "   # ends what runs in it")}
	}
	return []Finding{f}
}
