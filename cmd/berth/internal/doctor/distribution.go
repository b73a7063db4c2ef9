package doctor

import (
	"slices"
	"strings"
)

// install is the command that installs a package, whose name is not the same
// everywhere. Where the distribution is unknown it is told in words.
func (m *Machine) install(debian, fedora, arch, suse, alpine string) Fix {
	ids := m.distribution()
	for _, d := range [...]struct{ id, command string }{
		{"debian", "apt-get install " + debian}, {"ubuntu", "apt-get install " + debian},
		{"fedora", "dnf install " + fedora}, {"rhel", "dnf install " + fedora}, {"centos", "dnf install " + fedora},
		{"arch", "pacman -S " + arch}, {"suse", "zypper install " + suse}, {"opensuse", "zypper install " + suse},
		{"alpine", "apk add " + alpine},
	} {
		if slices.Contains(ids, d.id) {
			return m.sudo(d.command)
		}
	}
	return Fix{Run: "install the package that is called " + debian + " on Debian"}
}

// distribution gives the names of the distribution and of those that it is made
// from (os-release(5)).
func (m *Machine) distribution() []string {
	var ids []string
	for line := range strings.Lines(m.read("etc/os-release")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		if key == "ID" || key == "ID_LIKE" {
			ids = append(ids, strings.Fields(strings.Trim(value, `"'`))...)
		}
	}
	return ids
}

// bootOption is how an option gets onto the kernel's command line.
func (m *Machine) bootOption(option string) []Fix {
	ids := m.distribution()
	if slices.Contains(ids, "fedora") || slices.Contains(ids, "rhel") {
		return []Fix{m.sudo("grubby --update-kernel=ALL --args=" + option), m.sudo("reboot")}
	}
	if m.exists("etc/default/grub") {
		return []Fix{
			dropIn("/etc/default/grub.d/berth.cfg", `GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX `+option+"\"\n"),
			m.sudo("update-grub"), m.sudo("reboot"),
		}
	}
	return []Fix{{Run: "add " + option + " to the kernel's command line, and boot anew"}}
}

// setting is how a kernel parameter is set for now and ever.
func (m *Machine) setting(name, value string) []Fix {
	file := "/etc/sysctl.d/99-" + name + ".conf" // one for each, so that none writes over another
	return []Fix{dropIn(file, name+" = "+value+"\n"), m.sudo("sysctl --system")}
}
